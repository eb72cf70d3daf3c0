"""Tests that torch's internal function for negative views and torch's public method give equal results."""

from types import SimpleNamespace

import pytest

import cuda_tma
from cuda_tma._read import negative
from cuda_tma._read.export import export_tensor
from cuda_tma._read.negative import find_is_neg

torch = pytest.importorskip("torch")


def tensors():
    """Return tensors of every kind that may have the negative bit, each with a bool that is true if the bit is set."""
    real, complex_ = torch.arange(6.0).reshape(2, 3), torch.zeros(4, dtype=torch.complex64)
    assigned = torch.zeros(3)
    assigned.data = torch._neg_view(torch.ones(3))
    with torch.inference_mode():
        inferred = torch._neg_view(torch.ones(2))
    yield from [
        real, real.t(), real[0], torch._neg_view(real), torch._neg_view(real)[1],
        torch._neg_view(torch._neg_view(real)), torch._neg_view(real).clone(),
        complex_.imag, complex_.conj().imag, complex_.conj(), assigned, inferred,
        torch.nn.Parameter(real), real.requires_grad_().view(6), torch._neg_view(torch.arange(3)),
        torch._neg_view(torch.zeros(2, dtype=torch.bfloat16)), torch.empty(0), torch.empty(2, device="meta"),
    ]  # fmt: skip


def test_it_agrees_with_the_method():
    address, offset = find_is_neg(torch)
    function = negative.ctypes.CFUNCTYPE(negative.ctypes.c_bool, negative.ctypes.c_void_p)(address)
    told = [(bool(function(id(tensor) + offset)), tensor.is_neg()) for tensor in tensors()]
    assert all(found == said for found, said in told) and {said for _, said in told} == {False, True}


def test_a_negative_view_is_refused_and_a_positive_one_read():
    for tensor in (tensor for tensor in tensors() if tensor.device.type == "cpu" and not tensor.is_conj()):
        if tensor.is_neg():
            with pytest.raises(cuda_tma.TensorMapError, match="resolve_neg"):
                export_tensor(tensor)
        else:
            assert export_tensor(tensor).source is tensor


def test_a_type_with_its_own_method_is_read_by_it():
    class Own(torch.Tensor):
        def is_neg(self):
            return True

    with pytest.raises(cuda_tma.TensorMapError, match="resolve_neg"):
        export_tensor(torch.zeros(2).as_subclass(Own))


def test_a_type_with_dynamic_methods_is_read_by_the_method():
    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if getattr(function, "__name__", "") == "is_neg":
                return True
            return super().__torch_function__(function, types, args, kwargs or {})

    with pytest.raises(cuda_tma.TensorMapError, match="resolve_neg"):
        export_tensor(torch.zeros(2).as_subclass(Answers))


@pytest.mark.parametrize("other", ["_ZN2at6native7is_conjERKNS_6TensorE", "is_not_there"])
def test_another_function_is_not_taken(monkeypatch, other):
    monkeypatch.setattr(negative, "IS_NEG", other)
    assert find_is_neg.__wrapped__(torch) is None


def test_a_tensor_of_another_device_is_not_read():
    class Elsewhere(torch.Tensor):
        _cdata = 0x123457

    made = {"empty": lambda *_, device: torch.empty(1).as_subclass(Elsewhere), "_neg_view": torch._neg_view}
    assert find_is_neg.__wrapped__(SimpleNamespace(_C=torch._C, **made)) is None
    assert find_is_neg.__wrapped__(SimpleNamespace()) is None
