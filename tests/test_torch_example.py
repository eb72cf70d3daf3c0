"""A test that a model with an operator of the examples trains on CPU tensors as it does in torch."""

from __future__ import annotations

import pytest

from benchmarks.kernels import example
from cuda_tma import simulate

torch = pytest.importorskip("torch")


def test_a_model_trains_on_the_simulator():
    module = example("torch_layer")
    linear_relu = module.layer_operator(simulate.Device(multiprocessor_count=2))
    torch._dynamo.reset()
    ours = module.train(linear_relu, "cpu", "aot_eager")
    theirs = module.train(module.reference, "cpu", "aot_eager")
    assert ours == pytest.approx(theirs, abs=0.01)
    assert ours[1] < ours[0]


def test_the_values_and_opcheck():
    module = example("torch_layer")
    linear_relu = module.layer_operator(simulate.Device(multiprocessor_count=2))
    x, weight = torch.randn(130, 72).bfloat16(), torch.randn(264, 72).bfloat16()
    bias = torch.randn(264)
    torch.testing.assert_close(linear_relu(x, weight, bias), module.reference(x, weight, bias), rtol=2**-7, atol=2**-7)
    checked = torch.library.opcheck(linear_relu, (x[:8], weight[:16], bias[:16].contiguous()))
    assert {*checked.values()} == {"SUCCESS"}
