"""The class ExportedTensor: the description of a tensor by DLPack or the CUDA array interface, and its memory's owner.
"""

from math import prod

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memset

import numpy as np

from ..rules import _refusals
from .._data_type import DLPACK_DTYPES, DLPACK_NAMES

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil

DLPACK_VERSION = (1, 3)

cdef enum:
    OPAQUE_CODE = 3  # OPAQUE_CODE is the type code of a view without a dtype.
    FLAG_IS_COPIED = 2
    MAX_NDIM = 64  # MAX_NDIM is the limit of NumPy. No supported library has a higher limit.


@cython.freelist(16)
cdef class ExportedTensor:
    def __cinit__(self):
        memset(&self.layout, 0, sizeof(self.layout))

    def __dealloc__(self):
        cdef DLManagedTensorVersioned* versioned = self.versioned
        cdef DLManagedTensor* unversioned = self.unversioned
        # The GIL is released, and deleters take the GIL themselves if they need it (DLPack, Python Specification). A
        # deleter that frees device memory waits for the device, which may wait for a host function in Python.
        if versioned != NULL and versioned.deleter != NULL:
            with nogil:
                versioned.deleter(versioned)
        if unversioned != NULL and unversioned.deleter != NULL:
            with nogil:
                unversioned.deleter(unversioned)
        PyMem_Free(self.values)

    @property
    def data_pointer(self):
        return address_of(&self.layout)

    @property
    def shape(self):
        return shape_of(&self.layout)

    @property
    def strides(self):
        return strides_of(&self.layout)

    @property
    def dlpack_dtype(self):
        """The code, the bits and the lanes of the tensor's dtype."""
        return self.layout.code, self.layout.bits, self.layout.lanes

    @property
    def dlpack_device(self):
        """The device type and the device id, with type 0 if the exporter did not report the type."""
        return self.layout.device_type, self.layout.device_id

    @property
    def dtype_name(self):
        """The name of the element type, such as ``"float8_e4m3fn"``."""
        return dtype_name_of(dtype_key(&self.layout))

    @property
    def exporting_obj(self):
        """The exported object, which is the tensor, or the view or Buffer through which the tensor was passed."""
        return self.source if self.kept is None else self.kept

    def __dlpack_device__(self):
        return self.dlpack_device

    def __dlpack__(self, *, stream=None, max_version=None):
        """Return a capsule for cuda.core's view.

        The view receives this object and holds it as its ``exporting_obj``.

        The capsule holds no reference, because the garbage collector cannot see a reference in a capsule. Otherwise it
        would never collect a tensor with a view of itself.
        """
        if stream != -1 and (stream is not None or is_stream_ordered(self.layout.device_type)):
            _order_before(stream, self.exporting_obj)  # A stream None stands for the legacy default stream.
        return _new_capsule(self, NULL)

    def capsule(self):
        """Return a DLPack capsule of the same memory. The capsule keeps this object alive."""
        capsule = _new_capsule(self, <void*>self)
        Py_INCREF(self)
        return capsule


cdef object _new_capsule(ExportedTensor exported, void* kept):
    """Return a capsule with its own shape and strides.

    The deleter of the capsule releases `kept` if that is not NULL.

    cuda.core's view cannot read the narrow floats. The capsule therefore exports them as unsigned integers of their
    size.
    """
    cdef DLTensor* layout = &exported.layout
    cdef size_t values_bytes = layout.ndim * sizeof(int64_t)
    cdef DLManagedTensorVersioned* managed = <DLManagedTensorVersioned*>PyMem_RawMalloc(
        sizeof(DLManagedTensorVersioned) + 2 * values_bytes)
    if managed == NULL:
        raise MemoryError
    managed.major, managed.minor = DLPACK_VERSION
    managed.flags = exported.versioned.flags if exported.versioned != NULL else 0
    managed.dl_tensor = layout[0]
    managed.dl_tensor.shape = <int64_t*>&managed[1]
    memcpy(managed.dl_tensor.shape, layout.shape, values_bytes)
    if layout.strides != NULL:
        managed.dl_tensor.strides = managed.dl_tensor.shape + layout.ndim
        memcpy(managed.dl_tensor.strides, layout.strides, values_bytes)
    if layout.code >= FIRST_NARROW_CODE:
        managed.dl_tensor.code = 1
        managed.dl_tensor.bits = <unsigned char>(layout.bits * layout.lanes)
        managed.dl_tensor.lanes = 1
    managed.manager_ctx = kept
    managed.deleter = _release_managed
    return PyCapsule_New(managed, b"dltensor_versioned", _delete_unused_capsule)


cdef object _order_before(object stream, object tensor):
    """Order the pending work of a tensor before the next work of a stream.

    The function discards the capsule of the request.
    """
    if getattr(tensor, "requires_grad", False):
        tensor = tensor.detach()
    tensor.__dlpack__(stream=stream)


cdef void _release_managed(DLManagedTensorVersioned* managed) noexcept nogil:
    """Release an export.

    The consumer of the capsule calls this function from any thread, perhaps after Python has ended.
    """
    if managed.manager_ctx != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object>managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _delete_unused_capsule(object capsule) noexcept:
    cdef DLManagedTensorVersioned* managed
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        managed.deleter(managed)


cdef tuple shape_of(DLTensor* tensor):
    return tuple([tensor.shape[dim] for dim in range(tensor.ndim)])


cdef tuple strides_of(DLTensor* tensor):
    """Return strides in elements.

    If the exporter omitted the strides, return the strides of a C-contiguous tensor.
    """
    if tensor.strides != NULL:
        return tuple([tensor.strides[dim] for dim in range(tensor.ndim)])
    return contiguous_strides(shape_of(tensor))


def contiguous_strides(shape):
    """Return the strides in elements of a C-contiguous tensor."""
    return tuple(prod(shape[dim + 1:]) for dim in range(len(shape)))


def dtype_name_of(uint32_t key):
    """Return the name of a DLPack dtype, which is passed as ``code | bits << 8 | lanes << 16``."""
    dtype = key & 0xFF, key >> 8 & 0xFF, key >> 16
    if dtype[0] == OPAQUE_CODE:
        return f"untyped ({dtype[1] // 8}-byte elements)"
    return DLPACK_NAMES.get(dtype, "DLPack (code, bits, lanes) {}".format(dtype))


def describe_tensor(shape, strides=None, dtype="float32", address=0, *, itemsize=None, device_id=-1):
    """Return an :class:`ExportedTensor` of plain values, which owns no memory.

    Parameters
    ----------
    shape, strides : sequence of int
        The shape and the strides in tensor order. Strides are in elements, and None means C-contiguous.
    dtype : str or None
        The name of a dtype, or None for elements of `itemsize` bytes whose type is unknown.
    address : int
        Address of the first element.
    device_id : int
        The CUDA device of the memory. The value -1 queries the driver.

    Examples
    --------
    >>> describe_tensor((4, 8)).strides
    (8, 1)
    """
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    found = DLPACK_DTYPES.get(dtype) if dtype is not None else (OPAQUE_CODE, 8 * itemsize, 1)
    if found is None:
        raise _refusals.dtype(dtype)
    exported.layout.code, exported.layout.bits, exported.layout.lanes = found
    exported.layout.data = <void*><uintptr_t>address
    exported.layout.device_type = kDLCUDA if device_id >= 0 else 0
    exported.layout.device_id = device_id
    set_values(exported, tuple(shape), None if strides is None else tuple(strides))
    return exported


# ---- the protocols ----

cdef int adopt_exchange(ExportedTensor exported, object tensor, DLPackExchangeAPI* api) except -1:
    api.managed_tensor_from_py_object_no_sync(<void*>tensor, &exported.versioned)
    if exported.versioned == NULL:
        raise _refusals.not_exported(tensor)
    return _adopt_versioned(exported)


cdef int _adopt_versioned(ExportedTensor exported) except -1:
    if exported.versioned.major != 1:
        raise _refusals.dlpack_version(exported.versioned.major)
    if exported.versioned.flags & FLAG_IS_COPIED:
        raise _refusals.copied()
    return _adopt_layout(exported, &exported.versioned.dl_tensor)


cdef int _adopt_layout(ExportedTensor exported, DLTensor* tensor) except -1:
    if not 0 <= tensor.ndim <= MAX_NDIM or (tensor.ndim > 0 and tensor.shape == NULL):
        raise _refusals.malformed(tensor.ndim, tensor.shape != NULL, MAX_NDIM)
    exported.layout = tensor[0]
    return 0


cdef object dlpack_capsule(object tensor):
    """Return a DLPack capsule from a request that does not let the host wait.

    The array API standard defines stream=-1 for this request. NumPy accepts no stream for host memory. JAX 0.11 treats
    -1 as the handle of a stream and fails, and without a stream it waits for the array. With the legacy default stream
    (1), JAX makes that stream wait. (With 0.35 s of work pending, the call took 0.35 s without a stream, and 0.2 ms
    with stream 1.)
    """
    if not is_stream_ordered(tensor.__dlpack_device__()[0]):
        return _versioned_capsule(tensor)
    try:
        return _versioned_capsule(tensor, stream=-1)
    except Exception:
        return _versioned_capsule(tensor, stream=1)


cdef inline bint is_stream_ordered(int device_type) noexcept:
    """Return whether work on the memory is queued on streams.

    For other memory, None means no stream.
    """
    return device_type == kDLCUDA or device_type == kDLCUDAManaged


def _versioned_capsule(tensor, **keywords):
    try:
        return tensor.__dlpack__(max_version=DLPACK_VERSION, **keywords)
    except TypeError:  # An exporter from before DLPack 1.0 does not accept max_version.
        return tensor.__dlpack__(**keywords)


cdef int adopt_capsule(ExportedTensor exported, object capsule) except -1:
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        exported.versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return _adopt_versioned(exported)
    if not PyCapsule_IsValid(capsule, b"dltensor"):
        raise _refusals.no_capsule(capsule)
    exported.unversioned = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
    PyCapsule_SetName(capsule, b"used_dltensor")
    return _adopt_layout(exported, &exported.unversioned.dl_tensor)


_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # _KIND_CODES maps NumPy's kind to the DLDataTypeCode.


cdef int adopt_array_interface(ExportedTensor exported, object interface) except -1:
    """Read ``__cuda_array_interface__``, version 2 or 3, as Numba's documentation of the protocol defines it."""
    dtype = np.dtype(interface["typestr"])
    if dtype.kind not in _KIND_CODES or not dtype.isnative or dtype.itemsize > 16:
        raise _refusals.typestr(interface["typestr"])
    if interface.get("mask") is not None:
        raise _refusals.mask()
    strides_bytes = interface.get("strides")
    strides = None
    if strides_bytes is not None:
        if any(stride % dtype.itemsize for stride in strides_bytes):
            raise _refusals.byte_strides(tuple(strides_bytes), dtype.itemsize)
        strides = tuple(stride // dtype.itemsize for stride in strides_bytes)
    exported.layout.code = _KIND_CODES[dtype.kind]
    exported.layout.bits = dtype.itemsize * 8
    exported.layout.lanes = 1
    exported.layout.data = <void*><uintptr_t>interface["data"][0]
    return set_values(exported, tuple(interface["shape"]), strides)


cdef int set_values(ExportedTensor exported, tuple shape, tuple strides) except -1:
    cdef Py_ssize_t ndim = len(shape)
    if ndim > MAX_NDIM or (strides is not None and len(strides) != ndim):
        raise _refusals.shape_and_strides(shape, strides)
    _make_room(exported, ndim)
    try:
        for dim, (extent, stride) in enumerate(zip(shape, contiguous_strides(shape) if strides is None else strides)):
            exported.layout.shape[dim] = extent
            exported.layout.strides[dim] = stride
    except OverflowError:
        raise _refusals.beyond_64_bits(shape, strides) from None
    return 0


cdef int copy_values(ExportedTensor exported, DLTensor* tensor) except -1:
    """Copy a layout whose shape and strides belong to another object, which may change them."""
    exported.layout = tensor[0]
    _make_room(exported, tensor.ndim)
    memcpy(exported.layout.shape, tensor.shape, tensor.ndim * sizeof(int64_t))
    if tensor.strides == NULL:
        exported.layout.strides = NULL
    else:
        memcpy(exported.layout.strides, tensor.strides, tensor.ndim * sizeof(int64_t))
    return 0


cdef int _make_room(ExportedTensor exported, Py_ssize_t ndim) except -1:
    """Allocate memory for the shape and the strides, and set the pointers of the layout."""
    cdef int64_t* room = exported.inline_values
    if ndim > INLINE_NDIM:
        room = exported.values = <int64_t*>PyMem_Malloc(2 * ndim * sizeof(int64_t))
        if room == NULL:
            raise MemoryError
    exported.layout.ndim = <int>ndim
    exported.layout.shape = room
    exported.layout.strides = room + ndim
    return 0
