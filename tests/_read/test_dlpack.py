"""Tests of the fields of DLPack capsules and CUDA arrays, and of the release of their memory."""

import ctypes
import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest
from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma import StridedMemoryView, TensorMapError
from cuda_tma._read.dlpack import describe_tensor
from cuda_tma._read.export import borrow, export_tensor
from tests.support.capsules import Exporter, OldExporter, exchanging, name_of

LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.mark.parametrize(
    ("exporter", "used"), [(Exporter, b"used_dltensor_versioned"), (OldExporter, b"used_dltensor")]
)
def test_a_capsule_is_consumed_and_its_tensor_released_once(exporter, used):
    tensor = exporter((64, 128), (256, 1))
    exported = export_tensor(tensor)
    assert (exported.shape, exported.strides, exported.data_pointer) == ((64, 128), (256, 1), 1 << 32)
    assert (exported.dlpack_dtype, exported.dlpack_device) == ((2, 32, 1), (2, 0))
    assert (name_of(tensor.capsule), tensor.deleted) == (used, 0)
    del exported
    gc.collect()
    assert tensor.deleted == 1
    # The pointer to the deleter may be null according to dlpack.h.
    tensor.managed.deleter = None
    export_tensor(tensor)
    gc.collect()
    assert tensor.deleted == 1


def test_an_exporter_gets_the_newest_request_that_it_supports():
    new, old = Exporter(), OldExporter()
    export_tensor(new)
    export_tensor(old)
    assert new.asked == [{"max_version": (1, 3), "stream": -1}] and old.asked == [{"stream": -1}]


def test_host_memory_is_requested_without_a_stream():
    """A DLPack request for pinned memory (type 3) or CPU memory (type 1) passes no stream, unlike a request for CUDA
    memory (2) or managed memory (13)."""
    asked = {}
    for device_type in (1, 2, 3, 13):
        tensor = Exporter(device_type=device_type)
        export_tensor(tensor)
        asked[device_type] = tensor.asked[0].get("stream")
    assert asked == {1: None, 2: -1, 3: None, 13: -1}


def test_exporters_that_refuse_minus_one_get_the_legacy_stream():
    class Wary(Exporter):
        def __dlpack__(self, **keywords):
            if keywords["stream"] == -1:
                self.asked.append(keywords)
                raise RuntimeError("no such stream")
            return super().__dlpack__(**keywords)

    tensor = Wary()
    assert export_tensor(tensor).shape == (64, 128)
    assert [keywords["stream"] for keywords in tensor.asked] == [-1, 1]


@pytest.mark.parametrize(("major", "message"), [(2, "DLPack 2; this reads DLPack 1"), (0, "DLPack 0; this reads")])
def test_another_dlpack_is_refused_and_released(major, message):
    tensor = Exporter()
    tensor.managed.major, tensor.managed.minor = major, 3
    with pytest.raises(TensorMapError, match=message):
        export_tensor(tensor)
    gc.collect()
    assert tensor.deleted == 1


def test_a_copy_is_refused_and_other_flags_are_not():
    tensor = Exporter()
    tensor.managed.flags = 2
    with pytest.raises(TensorMapError, match="exports a copy of itself"):
        export_tensor(tensor)
    # The array is read-only, and a load does not write to it.
    tensor.managed.flags = 1
    assert export_tensor(tensor).shape == (64, 128)
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    assert view.readonly is True


def _without_shape(layout):
    layout.shape = None


def _with_ndim(ndim):
    return lambda layout: setattr(layout, "ndim", ndim)


MALFORMED = [
    (_without_shape, "exports 2 dimensions without a shape"), (_with_ndim(-1), "exports -1 dimensions;"),
    (_with_ndim(2**30), "exports 1073741824 dimensions;"), (_with_ndim(65), "exports 65 dimensions; .* 0 to 64 are"),
]  # fmt: skip


@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
@pytest.mark.parametrize(("spoil", "message"), MALFORMED)
def test_a_malformed_capsule_is_refused_and_released(driver, exporter, spoil, message):
    tensor = exporter()
    spoil(tensor.layout)
    for read in (
        export_tensor,
        StridedMemoryView.from_dlpack,
        lambda tensor: cuda_tma.create_tensor_map(tensor, box_dim=(8, 8)),
    ):
        with pytest.raises(TensorMapError, match=message):
            read(tensor)
    del read
    gc.collect()
    assert tensor.deleted == 3


def test_64_dimensions_and_none_are_read():
    assert export_tensor(Exporter((1,) * 63 + (7,))).shape == (1,) * 63 + (7,)
    scalar = Exporter(())
    scalar.layout.shape = None
    assert export_tensor(scalar).shape == export_tensor(scalar).strides == ()


@pytest.mark.parametrize("given", ["no capsule", None, 3])
def test_invalid_capsule(given):
    class Odd(Exporter):
        def __dlpack__(self, **keywords):
            return given

    with pytest.raises(
        TensorMapError, match=f"__dlpack__ returned a {type(given).__name__}, not an unused DLPack capsule"
    ):
        export_tensor(Odd())


def test_a_used_capsule_is_refused_and_not_released_twice():
    class Again(Exporter):
        def __dlpack__(self, **keywords):
            return self.capsule or super().__dlpack__(**keywords)

    tensor = Again()
    first = export_tensor(tensor)
    with pytest.raises(TensorMapError, match="returned a PyCapsule, not an unused DLPack capsule"):
        export_tensor(tensor)
    del first
    gc.collect()
    assert tensor.deleted == 1


@pytest.fixture
def patient():
    """Set a very long switch interval of threads, so that a thread runs only when another thread releases the GIL.

    An alarm ends a test that hangs."""
    before = sys.getswitchinterval(), signal.signal(signal.SIGALRM, lambda *_: None)
    sys.setswitchinterval(1000)
    signal.alarm(10)
    yield
    signal.alarm(0)
    sys.setswitchinterval(before[0])
    signal.signal(signal.SIGALRM, before[1])


@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
def test_deleters_are_called_without_the_gil(patient, exporter):
    """In the test, the deleter of a capsule waits for a thread that runs Python, as the release of device memory may
    do."""
    tensor = exporter()
    tensor.managed.deleter = ctypes.cast(LIBC.sem_wait, ctypes.c_void_p).value
    exported = export_tensor(tensor)
    # The semaphore overwrites the field before the deleter, because no code reads this field any longer.
    LIBC.sem_init(ctypes.byref(tensor.managed), 0, 0)
    go, ran = threading.Lock(), []

    def post():
        with go:
            ran.append(True)
            LIBC.sem_post(ctypes.byref(tensor.managed))

    go.acquire()
    thread = threading.Thread(target=post)
    thread.start()
    go.release()
    del exported
    ran_before_the_deleter_ended = list(ran)
    thread.join()
    assert ran_before_the_deleter_ended == [True]


# ---- capsules of this package ----


def test_a_capsule_of_ours_shows_the_tensor():
    """NumPy receives the test's capsule, and releases the capsule after all other references."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    exported = export_tensor(values)
    gone = weakref.ref(values)
    del values
    shown = np.from_dlpack(exported)
    assert shown.strides == (16, 8) and np.array_equal(shown, [[0, 2], [4, 6], [8, 10]])

    class Capsule:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **keywords):
            return self.capsule

        def __dlpack_device__(self):
            return 1, 0

    kept = np.from_dlpack(Capsule(exported.capsule()))
    del exported
    gc.collect()
    assert np.array_equal(kept, [[0, 2], [4, 6], [8, 10]]) and gone() is not None
    del kept, shown
    gc.collect()
    assert gone() is None


def test_an_unused_capsule_of_ours_keeps_nothing():
    tensor = Exporter()
    exported = export_tensor(tensor)
    capsule = exported.capsule()
    del exported
    gc.collect()
    assert tensor.deleted == 0
    del capsule
    gc.collect()
    assert tensor.deleted == 1


@pytest.mark.parametrize("view_type", [StridedMemoryView, CoreView])
def test_a_tensor_with_a_view_of_itself_is_collected(view_type):
    for make in (view_type.from_dlpack, view_type.from_any_interface):
        tensor = Exporter()
        tensor.view = make(tensor, stream_ptr=-1)
        gone = weakref.ref(tensor)
        # The garbage collector cannot find the object that holds the tensor.
        tensor._deleter = tensor.managed.deleter = None
        # The test keeps the memory, so that it can read the memory after the tensor is freed.
        memory = tensor.memory
        del tensor
        gc.collect()
        # The first word of the memory is the major version of DLPack.
        assert gone() is None and memory[0] == 1


@pytest.mark.parametrize("is_asked_first", [False, True])
def test_a_view_outlives_its_tensor(driver, is_asked_first):
    tensor = Exporter((8, 32), (64, 1))
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    if is_asked_first:
        assert view.shape == (8, 32)
    gc.collect()
    assert (view.shape, view.strides, view.ptr, tensor.deleted) == ((8, 32), (64, 1), 1 << 32, 0)
    descriptor = view.as_tensor_map((8, 8))
    del view
    gc.collect()
    assert tensor.deleted == 0 and descriptor.tensor is tensor
    del descriptor
    gc.collect()
    assert tensor.deleted == 1


def test_narrow_floats_go_out_as_bytes():
    exported = describe_tensor((4, 8), dtype="float8_e4m3fn", address=64, device_id=0)
    assert exported.dtype_name == "float8_e4m3fn"
    view = CoreView.from_dlpack(exported, stream_ptr=-1)
    assert (view.dtype, view.shape) == (np.dtype("uint8"), (4, 8))
    packed = CoreView.from_dlpack(describe_tensor((4, 8), dtype="float4_e2m1fn_x2", address=64, device_id=0), -1)
    assert (packed.dtype, packed.shape) == (np.dtype("uint8"), (4, 8))
    last_wide = CoreView.from_dlpack(describe_tensor((4, 8), dtype="bool", address=64, device_id=0), -1)
    assert last_wide.dtype == np.dtype("bool")


# ---- the CUDA array interface ----


class CudaArray:
    def __init__(self, shape=(64, 128), typestr="<f4", address=1 << 32, **more):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, False), "version": 3, **more
        }  # fmt: skip


@pytest.mark.parametrize(
    ("typestr", "name"),
    [("<f4", "float32"), ("<i8", "int64"), ("|u1", "uint8"), ("|b1", "bool"), ("<c8", "complex64"),
     ("<c16", "complex128"), ("<f2", "float16")],
)  # fmt: skip
def test_cuda_arrays(typestr, name):
    exported = export_tensor(CudaArray(typestr=typestr))
    assert (exported.shape, exported.strides) == ((64, 128), (128, 1))
    assert (exported.dtype_name, exported.data_pointer, exported.dlpack_device) == (name, 1 << 32, (0, 0))


def test_strides_of_cuda_arrays_are_in_bytes():
    assert export_tensor(CudaArray(strides=(1024, 4))).strides == (256, 1)
    assert export_tensor(CudaArray(strides=None, mask=None)).strides == (128, 1)
    assert export_tensor(CudaArray((1,) * 63 + (5,))).shape == (1,) * 63 + (5,)


REFUSED = [
    ({"typestr": ">f4"}, "typestr '>f4' is not a native number type"), ({"typestr": "<M8[s]"}, "typestr '<M8"),
    ({"typestr": "<c32"}, "typestr .<c32. is not"),
    ({"mask": 1}, "the tensor has a mask, which TMA cannot honor"),
    ({"strides": (1022, 4)}, r"strides \(1022, 4\) bytes are not multiples of the element size 4 bytes"),
    ({"strides": (4,)}, r"shape \(64, 128\) and strides \(1,\) do not describe one tensor"),
    ({"shape": (1,) * 65}, "do not describe one tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("keywords", "message"), REFUSED)
def test_cuda_arrays_that_are_refused(keywords, message):
    with pytest.raises(TensorMapError, match=message):
        export_tensor(CudaArray(**keywords))


# ---- the C exchange API ----


def hand_over(tensor, out):
    out[0] = ctypes.addressof(tensor.managed)
    return 0


@pytest.mark.parametrize("versions", [[(1, 3)], [(1, 0)], [(2, 0), (1, 3)], [(3, 0), (2, 0), (1, 1)]])
def test_the_exchange_api_of_version_1_is_called(versions):
    tensor = exchanging(versions, hand_over)()
    exported = export_tensor(tensor)
    assert (exported.shape, exported.data_pointer, tensor.asked) == ((64, 128), 1 << 32, [])
    del exported
    gc.collect()
    assert tensor.deleted == 1


@pytest.mark.parametrize(
    ("versions", "name"), [([(2, 0)], b"dlpack_exchange_api"), ([(3, 0), (2, 1)], b"dlpack_exchange_api"),
                           ([(1, 3)], b"something_else")]
)  # fmt: skip
def test_without_an_exchange_api_of_version_1_the_tensor_exports(versions, name):
    tensor = exchanging(versions, hand_over, name)()
    assert export_tensor(tensor).shape == (64, 128) and len(tensor.asked) == 1


def test_an_exchange_that_gives_nothing():
    with pytest.raises(
        TensorMapError, match="Exchanging refused to export itself through DLPack, with no reason given"
    ):
        export_tensor(exchanging([(1, 3)], lambda tensor, out: 0)())


# ---- streams ----


def test_a_tensor_that_requires_grad_is_ordered_detached():
    """The package exports the detached tensor, because torch cannot export a tensor that requires a gradient."""

    class Parameter(Exporter):
        requires_grad = True

        def detach(self):
            return detached

    detached, tensor = Exporter(), Parameter()
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=0x70)
    assert [keywords["stream"] for keywords in tensor.asked] == [-1]
    assert [keywords["stream"] for keywords in detached.asked] == [0x70] and view.exporting_obj is tensor


@pytest.mark.parametrize(
    ("device_type", "stream_ptr", "asked"),
    [(2, -1, []), (2, 0, [None]), (2, 0x70, [0x70]), (13, 0, [None]), (13, 0x70, [0x70]), (3, -1, [])],
)
def test_pending_work_is_waited_for(driver, device_type, stream_ptr, asked):
    """For CUDA memory and managed memory, the stream None of DLPack means the legacy default stream."""
    tensor = Exporter(device_type=device_type)
    StridedMemoryView.from_dlpack(tensor, stream_ptr)
    assert [keywords["stream"] for keywords in tensor.asked[1:]] == asked


def test_the_owner_of_a_buffer_need_not_be_readable():
    """The package keeps the owner of a Buffer's memory alive, but does not read the owner's attributes."""
    # NumPy does not export a structured array through DLPack.
    owner = np.zeros(4, [("field", "f4")])
    buffer = Buffer.from_handle(1 << 32, 8192, owner=owner)
    exported = describe_tensor((4096,), None, "uint8", (1 << 32) + 16)
    borrow(exported, buffer)
    assert exported.source is buffer and exported.exporting_obj is buffer
