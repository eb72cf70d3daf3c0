"""Tests that models with the operators of the examples train on CPU tensors as they do in torch."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.kernels import example
from cuda_tma import simulate

torch = pytest.importorskip("torch")

EXAMPLES = {
    "torch_layer": "layer_operator",
    "torch_attention": "attention_operator",
    "torch_experts": "experts_operator",
}


@cache
def made(name):
    """Return the module of an example, and the example's torch operator on the simulator."""
    module = example(name)
    if name == "torch_experts":
        # The kernel has a loop for each width. tests/examples runs all sixteen loops, whose compilation takes seconds.
        source = module.grouped_gemm.SOURCE.replace("WIDEST = 256", "WIDEST = 64")
        module.compiled = lambda compile: compile(source, "grouped_gemm", constants=module.grouped_gemm.CONSTANTS)
    return module, getattr(module, EXAMPLES[name])(simulate.Device(multiprocessor_count=2))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_model_trains_on_the_simulator(name):
    module, operator = made(name)
    torch._dynamo.reset()
    ours = module.train(operator, "cpu", "aot_eager")
    theirs = module.train(module.reference, "cpu", "aot_eager")
    assert ours == pytest.approx(theirs, abs=0.01)
    assert ours[1] < ours[0]


def test_a_layer_and_opcheck():
    module, linear_relu = made("torch_layer")
    x, weight = torch.randn(130, 72).bfloat16(), torch.randn(264, 72).bfloat16()
    bias = torch.randn(264)
    torch.testing.assert_close(linear_relu(x, weight, bias), module.reference(x, weight, bias), rtol=2**-7, atol=2**-7)
    checked = torch.library.opcheck(linear_relu, (x[:8], weight[:16], bias[:16].contiguous()))
    assert {*checked.values()} == {"SUCCESS"}


@pytest.mark.parametrize("causal", [False, True])
def test_the_gradients_of_attention(causal):
    module, attention = made("torch_attention")
    tokens = 70 if causal else 40
    q, k, v = (torch.randn(1, heads, length, 64).bfloat16() for heads, length in ((2, 70), (1, tokens), (1, tokens)))
    grad, found = torch.randn_like(q), []
    for attend in (attention, module.reference):
        given = [each.clone().requires_grad_() for each in (q, k, v)]
        output, _ = attend(*given, causal)
        output.backward(grad)
        found.append([output.detach(), *(each.grad for each in given)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2**-6, atol=2**-5)


def test_opcheck_of_attention():
    _, attention = made("torch_attention")
    checked = torch.library.opcheck(attention, (*(torch.randn(1, 1, 8, 64).bfloat16() for _ in range(3)), True))
    assert {*checked.values()} == {"SUCCESS"}


def test_the_products_of_experts():
    """In the test of the product of experts, one expert has no tokens."""
    module, experts = made("torch_experts")
    tokens, weights = torch.randn(60, 72).bfloat16(), torch.randn(3, 136, 72).bfloat16()
    counts = torch.tensor([20, 0, 40], dtype=torch.int32)
    expected = module.reference(tokens, weights, counts)
    torch.testing.assert_close(experts(tokens, weights, counts), expected, rtol=2**-7, atol=2**-7)
    checked = torch.library.opcheck(experts, (tokens[:8], weights[:, :16].contiguous(), counts.new_tensor([3, 5, 0])))
    assert {*checked.values()} == {"SUCCESS"}
