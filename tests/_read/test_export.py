"""Tests that the package reads the fields of torch's tensors directly, without a DLPack capsule."""

import gc
import weakref

import numpy as np
import pytest

import cuda_tma
from cuda_tma import StridedMemoryView, TensorMapError
from cuda_tma._read.export import export_tensor
from cuda_tma.rules import _refusals

torch = pytest.importorskip("torch")

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.float8_e4m3fn, torch.bool, torch.complex64]


@pytest.fixture(autouse=True)
def pinned(driver):
    """Replace attributes of the fake driver, so that the GPU can access all host memory."""
    driver.pinned = ((1, 1 << 63),)


def doors():
    return [
        lambda tensor: cuda_tma.create_tensor_map(tensor, box_dim=(8, 8)),
        export_tensor,
        StridedMemoryView.from_dlpack,
        lambda tensor: StridedMemoryView.from_any_interface(tensor, stream_ptr=-1),
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("inference", [False, True])
def test_negative_views_are_refused(dtype, inference):
    """The package refuses all negative views, including dense views, and views that torch does not treat as views."""
    with torch.inference_mode(inference):
        negative = torch._neg_view(torch.ones(16, 16).to(dtype))
    for tensor in (negative, negative.detach(), negative[2:], negative.view(-1)[:8], negative[:1]):
        for door in doors():
            with pytest.raises(TensorMapError, match=r"its negative bit set.*Pass tensor.resolve_neg\(\)"):
                door(tensor)
    assert export_tensor(torch._neg_view(negative)).data_pointer == negative.data_ptr()


@pytest.mark.parametrize("inference", [False, True])
def test_conjugates_are_refused(inference):
    with torch.inference_mode(inference):
        conjugate = torch.ones(16, 16, dtype=torch.complex64).conj()
        imaginary = conjugate.imag
    for door in doors():
        with pytest.raises(TensorMapError, match=r"its conjugate bit set.*Pass tensor.resolve_conj\(\)"):
            door(conjugate)
        with pytest.raises(TensorMapError, match="its negative bit set"):
            door(imaginary)
    assert export_tensor(conjugate.conj()).data_pointer == conjugate.data_ptr()


NOT_STRIDED = {
    "sparse": (lambda: torch.eye(16).to_sparse(), r"torch.sparse_coo and torch.float32 .* tensor.to_dense\(\)$"),
    "compressed": (lambda: torch.eye(16).to_sparse_csr(), r"torch.sparse_csr and .* Pass tensor.to_dense\(\)$"),
    "meta": (lambda: torch.ones(16, device="meta"), r"on meta does not show .* Pass a tensor with memory$"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(3), torch.ones(4)]), r"each of tensor.unbind\(\)$"),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(3), torch.ones(4)], layout=torch.jagged),
        r"torch.jagged and .* Pass each of tensor.unbind\(\)$",
    ),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(16), 0.1, 0, torch.quint8),
        r"torch.quint8 on cpu .* Pass tensor.int_repr\(\)$",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", NOT_STRIDED)
def test_a_tensor_without_strided_memory_is_refused_in_one_line(kind):
    make, message = NOT_STRIDED[kind]
    tensor = make()
    for door in doors()[:2]:
        with pytest.raises(TensorMapError, match=message) as caught:
            door(tensor)
        assert "\n" not in str(caught.value) and caught.value.__suppress_context__


def test_a_transformed_tensor_is_refused_in_one_line():
    told = []

    def told_of(tensor):
        with pytest.raises(TensorMapError, match="Pass it from outside of torch.vmap") as caught:
            export_tensor(tensor)
        told.append(str(caught.value))
        return tensor.sum()

    torch.vmap(told_of)(torch.ones(3, 4))
    torch.func.grad(told_of)(torch.ones(3))
    assert [text.count("\n") for text in told] == [0, 0]


class Resizes(torch.Tensor):
    """A tensor whose rank grows from 2 to 6 during the read, so that torch moves the sizes."""

    def untyped_storage(self):
        if self.dim() == 2:
            self.resize_(1, 1, 1, 1, 4, 8)
        return super().untyped_storage()


class ConjugateResizes(Resizes):
    def is_conj(self):
        return bool(Resizes.untyped_storage(self)) and super().is_conj()

    def untyped_storage(self):
        return torch.Tensor.untyped_storage(self)


@pytest.mark.parametrize(("kind", "dtype"), [(Resizes, torch.float32), (ConjugateResizes, torch.complex64)])
def test_a_tensor_that_resizes_itself_is_read_as_it_then_is(kind, dtype):
    for _ in range(20):
        tensor = torch.zeros(4, 8, dtype=dtype).as_subclass(kind)
        assert export_tensor(tensor).shape == (1, 1, 1, 1, 4, 8)
        tensor = torch.zeros(4, 8, dtype=dtype).as_subclass(kind)
        with pytest.raises(TensorMapError, match=r"rank 6 \(shape \(1, 1, 1, 1, 4, 8\)\)"):
            cuda_tma.create_tensor_map(tensor, box_dim=(4, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_the_storage_is_kept_and_not_the_tensor(dtype):
    """In torch, the assignment ``x.data = y`` replaces the storage of a tensor. The descriptor keeps the first
    storage."""

    class Array(np.ndarray):
        """An array that supports weak references, unlike NumPy's arrays."""

    for make in doors()[:2]:
        array = np.zeros((16, 16), str(dtype).split(".")[1]).view(Array)
        gone = weakref.ref(array)
        tensor = torch.from_numpy(array)
        del array
        kept = make(tensor)
        tensor.data = torch.zeros(16, 16, dtype=dtype)
        gc.collect()
        assert gone() is not None
        del kept
        gc.collect()
        assert gone() is None


def test_a_class_is_not_a_tensor():
    """A tensor class is not a tensor, because only instances of the class support the protocols."""
    for kind, name in ((torch.Tensor, "torch.Tensor"), (np.ndarray, "numpy.ndarray"), (int, "int")):
        with pytest.raises(TensorMapError, match=f"^the class {name} is not a tensor. Pass a torch, "):
            cuda_tma.create_tensor_map(kind, box_dim=(8, 8))


def test_a_moved_or_vanished_tensor_is_stale():
    tensor = torch.zeros(16, 16)
    view = StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    descriptors = [cuda_tma.create_tensor_map(each, box_dim=(8, 8)) for each in (tensor, view)]
    assert [descriptor.is_stale() for descriptor in descriptors] == [False, False]
    tensor.data = torch.zeros(16, 16)
    assert [descriptor.is_stale() for descriptor in descriptors] == [True, True]

    class Vanishes(torch.Tensor):
        is_gone = False

        def untyped_storage(self):
            if self.is_gone:
                raise RuntimeError("gone")
            return super().untyped_storage()

    vanishing = torch.zeros(16, 16).as_subclass(Vanishes)
    descriptor = cuda_tma.create_tensor_map(vanishing, box_dim=(8, 8))
    assert not descriptor.is_stale()
    vanishing.is_gone = True
    assert descriptor.is_stale()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64, torch.uint16, torch.int64], ids=str)
def test_fields_read_from_a_tensor(dtype):
    tensor = torch.zeros(8, 32).to(dtype)
    for each in (tensor, tensor[2:, :16], tensor.T, tensor[:, 1], tensor.flatten()[:1], torch.zeros((), dtype=dtype)):
        exported = export_tensor(each)
        assert (exported.shape, exported.strides) == (tuple(each.shape), each.stride())
        assert exported.data_pointer == each.data_ptr() and exported.source is each
        assert exported.dtype_name == str(dtype).split(".")[1]
        assert exported.dlpack_device == (1, 0)


class OfOldTorch(torch.Tensor):
    """A stand-in for a tensor of an old torch version, which lacks DLPack's C exchange API."""

    __dlpack_c_exchange_api__ = None


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int8])
def test_torch_without_the_exchange_api(dtype):
    tensor = torch.ones(16, 16).to(dtype).as_subclass(OfOldTorch)
    exported = export_tensor(tensor[2:])
    assert (exported.shape, exported.strides, exported.data_pointer) == ((14, 16), (16, 1), tensor[2:].data_ptr())
    with pytest.raises(TensorMapError, match="negative bit"):
        export_tensor(torch._neg_view(tensor))
    if dtype.is_complex:
        with pytest.raises(TensorMapError, match="resolve_conj"):
            export_tensor(tensor.conj())
    descriptor = cuda_tma.create_tensor_map(tensor, box_dim=(8, 16))
    tensor.data = torch.zeros(16, 16, dtype=dtype)
    assert descriptor.is_stale() and descriptor.params.global_address != tensor.data_ptr()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["meta", "quantized"])
def test_torch_without_the_exchange_api_refuses_in_the_same_words(kind):
    make, message = NOT_STRIDED[kind]
    with pytest.raises(TensorMapError, match=message) as caught:
        export_tensor(make().as_subclass(OfOldTorch))
    assert "\n" not in str(caught.value) and caught.value.__suppress_context__


def test_a_float8_that_torch_does_not_export():
    """The test skips torch 2.6, which does not export this dtype."""
    error = _refusals.not_strided(torch.ones(2).to(torch.float8_e5m2), RuntimeError("float8 types: not by dlpack"))
    assert str(error).endswith("(float8 types: not by dlpack). Pass tensor.view(torch.uint8), or use a newer torch")


def test_a_tensor_that_requires_grad_is_read():
    tensor = torch.ones(16, 16, requires_grad=True)
    for each in (tensor, tensor.as_subclass(OfOldTorch)):
        assert export_tensor(each).data_pointer == tensor.data_ptr()
