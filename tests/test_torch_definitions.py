"""Tests of the definitions of torch operators: their names, arguments and functions, and second definitions."""

from __future__ import annotations

import functools
from typing import Optional

import pytest

from cuda_tma import simulate
from tests.support import torch_kernels as kernels

torch = pytest.importorskip("torch")

from cuda_tma.torch import like, operator  # noqa: E402

GPU = simulate.Device(multiprocessor_count=2)
PLUS_ONE = """
extern "C" __global__ void plus_one(const float* NAME, float* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = NAME[threadIdx.x] + 1;
}
"""


def grid(x):
    return {"grid": (-(-x.shape[1] // 32), -(-x.shape[0] // 32)), "block": 32}


def plus_one(name):
    """Return the kernel that computes out = x + 1, with another name for the parameter x."""
    return lambda compile: compile(PLUS_ONE.replace("NAME", name), "plus_one")


def scale(name="cuda_tma_tests::definition", **changed):
    given = {"outputs": {"y": like("x")}, "config": grid, "simulator": GPU, **changed}
    return operator(name, given.pop("kernel", kernels.scale), **given)


# ---- refused definitions ----

NAMES = {
    "not the name of an operator": ("scale", "a::b::c", "a::b.c", "1a::b", "a b::c", "::", "ü::ö", "a::b\n", None, 3),
    "torch or Python reserves": ("class::scale", "a::def", "aten::scale", "a::name", "a::__init__", "load_library::a"),
}


@pytest.mark.parametrize(("words", "name"), [(words, name) for words in NAMES for name in NAMES[words]])
def test_a_wrong_name(words, name):
    with pytest.raises(ValueError, match=words):
        scale(name)


DEFINITIONS = {
    "unknown output": ({"outputs": {"z": like("x")}}, "outputs has 'z', which is not a parameter"),
    "unknown argument": ({"outputs": {"y": like("z")}}, r"outputs\['y'\] uses 'z'.* one of x, factor"),
    "no effect": ({"outputs": {}}, "neither outputs nor mutates_args"),
    "twice": ({"mutates_args": ["y"]}, "'y' is both in outputs and in mutates_args"),
    "no function": ({"outputs": {"y": 3}}, r"outputs\['y'\] is 3. Remedy: pass like"),
    "a number": ({"outputs": {"factor": like("x")}}, "parameter 'factor' of kernel scale is float, not a tensor"),
    "no dict": ({"outputs": ["y"]}, r"outputs is \['y'\]. Remedy: pass a dict"),
    "no signature": ({"outputs": {"y": torch.empty_like}}, r"outputs\['y'\] is <built-in .* whose parameters are unkn"),
    "config": ({"config": lambda size: None}, "config uses 'size'"),
    "source": ({"kernel": kernels.SCALE}, "kernel is '.*'. Remedy: pass a kernel of cuda_tma.compile, or a function"),
    "no kernel": ({"kernel": lambda compile: None}, "the function returned None. Remedy: return the kernel"),
    "a string": ({"mutates_args": "x"}, "mutates_args is 'x'. Remedy: pass a list"),
    "setup_context": ({"setup_context": print}, "setup_context was passed without backward"),
    "backward": ({"backward": True}, "backward is True. Remedy: pass a function"),
    "simulator": ({"simulator": True}, "simulator is True. Remedy: pass cuda_tma.simulate.Device()"),
    "keyword": ({"kernel": plus_one("in")}, "parameter 'in' of kernel plus_one cannot be the name of an argument"),
    "launch": ({"kernel": plus_one("launch")}, "parameter 'launch' of kernel plus_one cannot"),
    "generated": ({"kernel": plus_one("_make_out")}, "parameter '_make_out' of kernel plus_one cannot"),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_wrong_definition(name):
    changed, words = DEFINITIONS[name]
    with pytest.raises((TypeError, ValueError), match=words):
        scale(**changed)


def test_an_operator_needs_a_tensor():
    with pytest.raises(TypeError, match="definition has no tensor among its arguments"):
        scale(kernel=plus_one("x"), outputs={each: lambda n: torch.empty(n) for each in ("x", "out")})


class Callable:
    def __call__(self, launch, x: torch.Tensor) -> torch.Tensor:
        return x.clone()


FUNCTIONS = {
    "the first parameter of the function is missing": lambda: None,
    "the first parameter of the function is x": lambda x: x,
    "is not defined by def": Callable(),
    "functools.partial.* is not defined by def": functools.partial(Callable.__call__, None),
}


@pytest.mark.parametrize("words", FUNCTIONS)
def test_a_wrong_function(words):
    with pytest.raises(TypeError, match=words):
        operator("cuda_tma_tests::function")(FUNCTIONS[words])


# ---- names and kinds of arguments ----


@pytest.mark.parametrize("name", ["self", "Tensor", "str", "print", "args"])
def test_the_name_of_a_parameter(name):
    op = scale(kernel=plus_one(name), outputs={"out": like(name)}, config={"grid": 1, "block": 32})
    assert torch.equal(op(n=8, **{name: torch.ones(8)}), torch.full((8,), 2.0))


def test_a_function_may_take_arguments_by_keyword():
    assert torch.equal(scale(config=lambda *, x: grid(x))(torch.ones(32, 32), 3.0), torch.full((32, 32), 3.0))


@operator("cuda_tma_tests::optional", mutates_args=["out"], simulator=GPU)
def optional(launch, x: torch.Tensor, out: Optional[torch.Tensor] = None, *, by: float = 2.0) -> torch.Tensor:  # noqa: UP045
    y = torch.empty_like(x)
    for target in [y] if out is None else [y, out]:
        launch(lambda: grid(x), kernels.scale, x, target, by)
    return y


def test_a_mutated_tensor_may_be_missing():
    x, out = torch.rand(32, 32), torch.zeros(32, 32)
    assert torch.equal(optional(x), 2 * x) and torch.equal(optional(x, None, by=3.0), 3 * x)
    assert torch.equal(optional(x, out=out), out) and torch.equal(out, 2 * x) and out._version == 1
    assert {*torch.library.opcheck(optional, (x,)).values()} == {"SUCCESS"}


def test_a_tensor_may_be_an_argument_by_keyword():
    @operator("cuda_tma_tests::by_keyword", mutates_args=["y"], simulator=GPU)
    def by_keyword(launch, x: torch.Tensor, *, y: torch.Tensor) -> None:
        launch(grid(x), kernels.scale, x, y, 2.0)

    x, y = torch.rand(32, 32), torch.zeros(32, 32)
    by_keyword(x, y=y)
    assert torch.equal(y, 2 * x) and y._version == 1
    with pytest.raises(RuntimeError, match="by_keyword was called under vmap"):
        torch.vmap(lambda x: by_keyword(x, y=x))(torch.rand(2, 32, 32))


# ---- outputs ----


def test_outputs_have_memory_of_their_own():
    x, words = torch.rand(32, 32), "definition returns a tensor in the memory of an argument or of another output"
    for output in (lambda x: x, lambda x: x[:32]):
        op = scale(outputs={"y": output})
        for call in (op, lambda x, factor, op=op: torch.func.functionalize(op)(x.to("meta"), factor)):
            with pytest.raises(RuntimeError, match=words):
                call(x.clone(), 2.0)

    @operator("cuda_tma_tests::twins")
    def twins(launch, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x.clone(),) * 2

    with pytest.raises(RuntimeError, match="twins returns a tensor in the memory"):
        twins(x)


# ---- second definitions ----


def test_a_definition_takes_the_place_of_the_last():
    """The overload of the first definition calls the second definition, also with another schema."""
    x, last = torch.ones(32, 32), []
    for factor in (2.0, 3.0):
        last.append(scale("cuda_tma_tests::again", values={"factor": lambda f=factor: f}))
        assert [each(x)[0, 0] for each in last] == [factor] * len(last)
    assert torch.equal(scale("cuda_tma_tests::again")(x, 4.0), torch.full((32, 32), 4.0))
    for each in last:
        with pytest.raises(RuntimeError, match="missing value for argument 'factor'"):
            each(x)


def test_a_failed_definition_leaves_the_last():
    scale("cuda_tma_tests::stays")
    with pytest.raises(RuntimeError, match="non-functional"):
        scale("cuda_tma_tests::stays", outputs={}, mutates_args=["y"], backward=print)
    assert torch.ops.cuda_tma_tests.stays(torch.ones(32, 32), 2.0)[0, 0] == 2
    with pytest.raises(RuntimeError, match="non-functional"):
        scale("cuda_tma_tests::never", outputs={}, mutates_args=["y"], backward=print)
    assert not hasattr(torch.ops.cuda_tma_tests, "never")
