"""Tests of eager and compiled torch operators on CPU tensors, whose kernels the simulator runs."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from cuda_tma import simulate
from tests.support import torch_kernels as kernels

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[1] / "tools"))

import pages  # noqa: E402
from torch.library import opcheck  # noqa: E402

from cuda_tma.torch import like, operator  # noqa: E402

GPU = simulate.Device(multiprocessor_count=2)


def grid(x):
    return {"grid": (-(-x.shape[1] // 32), -(-x.shape[0] // 32)), "block": 32}


def keep_factor(ctx, inputs, output):
    ctx.factor = inputs[1]


scale = operator(
    "cuda_tma_tests::scale",
    kernels.scale,
    outputs={"y": like("x")},
    config=grid,
    backward=lambda ctx, grad: (scale(grad.contiguous(), ctx.factor), None),
    setup_context=keep_factor,
    simulator=GPU,
)
add_rows = operator(
    "cuda_tma_tests::add_rows",
    kernels.add_rows,
    outputs={"squares": like("total")},
    values={"rows": lambda x: x.shape[0], "columns": lambda x: x.shape[1]},
    mutates_args=["total"],
    config={"grid": 1, "block": 32},
    simulator=GPU,
)


def test_the_schema_follows_from_the_kernel():
    assert str(scale._schema) == "cuda_tma_tests::scale(Tensor x, float factor) -> Tensor"
    assert str(add_rows._schema) == "cuda_tma_tests::add_rows(Tensor x, Tensor(a1!) total, bool twice) -> Tensor"


def test_eager():
    x = torch.rand(40, 64)
    y = scale(x, 2.0)
    assert torch.equal(y, 2 * x) and y.dtype is torch.float32
    assert torch.equal(torch.ops.cuda_tma_tests.scale(x, factor=3.0), 3 * x)


def test_mutation_and_values():
    x, total = torch.rand(5, 40), torch.ones(40)
    before = total._version
    squares = add_rows(x, total, True)
    torch.testing.assert_close(total, 1 + 2 * x.sum(0))
    torch.testing.assert_close(squares, x.square().sum(0))
    assert total._version == before + 1


def test_a_saved_tensor_that_the_kernel_has_changed_is_found():
    weight, total = torch.ones(40, requires_grad=True), torch.ones(40)
    product = (weight * total).sum()
    add_rows(torch.rand(5, 40), total, False)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


ARGUMENTS = {
    "scale": (scale, (torch.rand(40, 64), 2.0)),
    "scale, with a gradient": (scale, (torch.rand(40, 64, requires_grad=True), 2.0)),
    "scale of rows that are padded": (scale, (torch.rand(40, 72)[:, :64], 2.0)),
    "scale of nothing": (scale, (torch.rand(0, 64), 2.0)),
    "add_rows": (add_rows, (torch.rand(5, 40), torch.zeros(40), False)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_opcheck(name):
    op, arguments = ARGUMENTS[name]
    assert {*opcheck(op, arguments).values()} == {"SUCCESS"}


def test_the_gradient():
    x = torch.rand(33, 64, dtype=torch.float32, requires_grad=True)
    (scale(x, 3.0) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, 18 * x.detach())


def test_autocast_converts_nothing():
    """Autocast converts no argument of an operator, unless torch.library.register_autocast has added a rule."""
    x = torch.rand(32, 64)
    with torch.autocast("cpu", torch.bfloat16):
        assert scale(x, 2.0).dtype is torch.float32
        with pytest.raises(RuntimeError, match="has dtype torch.bfloat16, .* takes float32; no element is converted"):
            scale(x @ x.T, 2.0)


def test_functional_call():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(32, 64))

        def forward(self):
            return scale(self.weight, 2.0)

    module, weight = Scaled(), torch.ones(32, 64, requires_grad=True)
    torch.func.functional_call(module, {"weight": weight}, ()).sum().backward()
    assert torch.equal(weight.grad, torch.full((32, 64), 2.0)) and module.weight.grad is None


# ---- several kernels ----


@operator("cuda_tma_tests::mean_rows", mutates_args=["sums"], simulator=GPU)
def mean_rows(launch, x: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    partial = x.new_empty(2, columns)
    launch({"grid": 2, "block": 32}, kernels.partial_sums, x, partial, rows, columns)
    launch(lambda: {"grid": 1, "block": 32}, kernels.column_sums, partial, sums, columns)
    return sums / rows


def test_several_kernels():
    assert str(mean_rows._schema) == "cuda_tma_tests::mean_rows(Tensor x, Tensor(a1!) sums) -> Tensor"
    x, sums = torch.rand(7, 40), torch.zeros(40)
    torch.testing.assert_close(mean_rows(x, sums), x.mean(0))
    torch.testing.assert_close(sums, x.sum(0))
    assert {*opcheck(mean_rows, (x, sums)).values()} == {"SUCCESS"}


def test_several_kernels_compiled():
    # The import of torch._dynamo takes 2 s, so only tests that need the module import it.
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x, sums: mean_rows(x, sums) + sums, fullgraph=True, backend=counter)
    for rows in (4, 7, 9):
        x, sums = torch.rand(rows, 40), torch.zeros(40)
        torch.testing.assert_close(compiled(x, sums), x.mean(0) + x.sum(0))
    assert counter.frame_count == 2
    with pytest.raises(RuntimeError, match="mean_rows: argument 'x' has strides"):
        torch.compile(mean_rows, fullgraph=True, backend="eager")(torch.rand(40, 7).T, torch.zeros(40))


def test_workspace():
    """In the test, the operator allocates an additional tensor as workspace for its kernel."""
    partial = operator(
        "cuda_tma_tests::halves",
        kernels.add_rows,
        outputs={"total": lambda x: x.new_zeros(x.shape[1])},
        workspace={"squares": like("total")},
        values={"rows": lambda x: x.shape[0], "columns": lambda total: total.shape[0], "twice": lambda: False},
        config={"grid": 1, "block": 32},
        simulator=GPU,
    )
    assert str(partial._schema) == "cuda_tma_tests::halves(Tensor x) -> Tensor"
    x = torch.rand(5, 40)
    torch.testing.assert_close(partial(x), x.sum(0))
    assert {*opcheck(partial, (x,)).values()} == {"SUCCESS"}


# ---- torch.compile and torch.export ----


def test_exported():
    class Model(torch.nn.Module):
        def forward(self, x):
            return scale(x.cos(), 2.0)

    rows = torch.export.Dim("rows", min=2, max=1024)
    program = torch.export.export(Model(), (torch.rand(40, 64),), dynamic_shapes={"x": {0: rows}})
    assert "cuda_tma_tests.scale.default" in str(program.graph)
    for count in (2, 40, 71):
        x = torch.rand(count, 64)
        assert torch.equal(program.module()(x), 2 * x.cos())


@pytest.fixture(autouse=True)
def no_compiled_functions():
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, False, True])
def test_compiled(backend, dynamic):
    """The number of recompilations equals the number for torch's own operators."""
    # The import of torch._dynamo takes 2 s, so only tests that need the module import it.
    from torch._dynamo.testing import CompileCounterWithBackend

    counters = [CompileCounterWithBackend(backend), CompileCounterWithBackend(backend)]
    settings = {"fullgraph": True, "dynamic": dynamic}
    ours = torch.compile(lambda x: scale(x.cos(), 2.0).sin(), backend=counters[0], **settings)
    theirs = torch.compile(lambda x: (x.cos() * 2.0).sin(), backend=counters[1], **settings)
    for rows in (40, 40, 48, 70, 33):
        x = torch.rand(rows, 64)
        assert torch.equal(ours(x), theirs(x))
    assert counters[0].frame_count == counters[1].frame_count == {None: 2, False: 4, True: 1}[dynamic]


def test_compiled_mutation():
    def both(x, total):
        return add_rows(x, total, False) + total

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    x, totals = torch.rand(5, 40), [torch.ones(40), torch.ones(40)]
    assert torch.equal(compiled(x, totals[0]), both(x, totals[1]))
    assert torch.equal(*totals)


def test_compiled_training():
    def step(x):
        return scale(x, 2.0).square().sum()

    x = torch.rand(40, 64, requires_grad=True)
    torch.compile(step, fullgraph=True, backend="aot_eager")(x).backward()
    torch.testing.assert_close(x.grad, 8 * x.detach())


# ---- refusals ----

WRONG = {
    "dtype": (torch.rand(40, 64).half(), r"has dtype torch.float16.* takes float32.*Remedy: pass tensor.to\(torch.flo"),
    "integers": (torch.ones(40, 64, dtype=torch.int32), "has dtype torch.int32"),
    "rank": (torch.rand(2, 40, 64), "has 3 dimensions, but TiledMap<.*> has 2"),
    "order": (torch.rand(64, 40).T, r"stride 40 elements .*tensor.contiguous\(\)"),
    "stride": (torch.rand(40, 63), "252 bytes.* TMA needs a multiple of 16"),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tensor(name, dynamic):
    tensor, words = WRONG[name]
    words = f"(?s)cuda_tma_tests::scale: argument 'x'.*{words}"
    with pytest.raises(RuntimeError, match=words):
        scale(tensor, 2.0)
    compiled = torch.compile(lambda x: scale(x, 2.0), fullgraph=True, backend="eager", dynamic=dynamic)
    with pytest.raises(RuntimeError, match=words.replace(r"\(", r"[(]")):
        compiled(tensor)
    assert torch.equal(compiled(torch.ones(40, 64)), torch.full((40, 64), 2.0))


def test_a_pointer_takes_contiguous_tensors():
    for wrong in (lambda x: add_rows(x, torch.ones(40), False), torch.compile(lambda x: add_rows(x, x[0], False))):
        with pytest.raises(RuntimeError, match=r"add_rows: argument 'x' has strides \(1, 5\).*tensor.contiguous\(\)"):
            wrong(torch.rand(40, 5).T)


def test_devices_are_not_mixed():
    with pytest.raises(RuntimeError, match="argument 'total' is on cpu, but 'x' is on meta; all tensors of a call"):
        add_rows(torch.rand(5, 40, device="meta"), torch.ones(40), False)


def test_vmap():
    with pytest.raises(RuntimeError, match="cuda_tma_tests::scale was called under vmap.*Remedy: call the operator"):
        torch.vmap(lambda x: scale(x, 2.0))(torch.rand(2, 32, 32))


def test_without_a_simulator():
    alone = operator("cuda_tma_tests::alone", kernels.scale, outputs={"y": like("x")}, config=grid)
    with pytest.raises(RuntimeError, match=r"alone was called with CPU tensors.*simulator=cuda_tma.simulate.Device\("):
        alone(torch.rand(32, 32), 2.0)


def test_a_race_raises():
    racing = operator(
        "cuda_tma_tests::racing", kernels.racing_scale, outputs={"y": like("x")}, config=grid, simulator=GPU
    )
    with pytest.raises(Exception, match="no fence.proxy.async between the two"):
        racing(torch.rand(32, 32), 2.0)


def test_zero_sizes():
    assert scale(torch.rand(0, 64), 2.0).shape == (0, 64)
    total = torch.ones(0)
    assert add_rows(torch.rand(5, 0), total, False).shape == (0,)
    assert torch.equal(add_rows(torch.rand(0, 40), torch.ones(40), False), torch.zeros(40))
    with pytest.raises(RuntimeError, match="argument 'x' has dtype torch.float16"):
        scale(torch.rand(0, 64).half(), 2.0)


# ---- kept objects ----


def test_tensors_end_with_the_caller():
    gc.collect()
    gc.disable()
    try:
        x = torch.rand(40, 64)
        y = scale(x, 2.0)
        storages = [weakref.ref(each.untyped_storage()) for each in (x, y)]
        tensors = [weakref.ref(each) for each in (x, y)]
        del x, y
        assert [each() for each in (*tensors, *storages)] == [None] * 4
    finally:
        gc.enable()


def test_torch_is_imported_only_with_the_module():
    code = (
        "import sys, cuda_tma; assert 'torch' not in sys.modules; import cuda_tma.torch; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- the page ----


def test_blocks_of_the_page_that_need_no_gpu():
    page = Path(__file__).parents[1] / "docs" / "how-to" / "torch-operator.md"
    blocks = [block for block in pages.blocks_of(page.read_text()) if block.word == "gpu"]
    names = {"__name__": "page"}
    for block in blocks:
        if 'device="cuda"' not in block.text:
            exec(compile(block.text, str(page), "exec"), names)
    assert len(blocks) == 4 and str(names["scale"]._schema) == blocks[0].shown.strip()
