"""Tests that models with the examples' torch operators train on a GPU, and that opcheck accepts the operators."""

from __future__ import annotations

import pytest

from benchmarks.kernels import example

torch = pytest.importorskip("torch")

OPERATORS = {
    "torch_layer": "layer_operator",
    "torch_attention": "attention_operator",
    "torch_experts": "experts_operator",
}


@pytest.fixture(autouse=True)
def no_compiled_functions():
    torch._dynamo.reset()


def half(*shape):
    return torch.randn(*shape, device="cuda").bfloat16()


def arguments(name):
    """Return arguments of the operator of an example."""
    return {
        "torch_layer": lambda: (half(130, 72), half(264, 72), torch.randn(264, device="cuda")),
        "torch_attention": lambda: (half(2, 4, 300, 64), half(2, 2, 300, 64), half(2, 2, 300, 64), True),
        "torch_experts": lambda: (
            half(100, 72),
            half(3, 136, 72),
            torch.tensor([30, 0, 70], device="cuda", dtype=torch.int32),
        ),
    }[name]()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_model_trains(device, name, backend):
    if backend == "inductor":
        pytest.importorskip("triton")
    module = example(name)
    ours = module.train(getattr(module, OPERATORS[name])(), "cuda", backend)
    theirs = module.train(module.reference, "cuda", backend)
    assert ours == pytest.approx(theirs, rel=0.02, abs=0.01) and ours[1] < ours[0]


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(device, name):
    module = example(name)
    operator, given = getattr(module, OPERATORS[name])(), arguments(name)
    assert {*torch.library.opcheck(operator, given).values()} == {"SUCCESS"}
    found, wanted = operator(*given), module.reference(*given)
    found, wanted = (each[0] if isinstance(each, tuple) else each for each in (found, wanted))
    torch.testing.assert_close(found, wanted, rtol=2**-6, atol=2**-6)
