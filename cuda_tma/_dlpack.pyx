"""Reading any tensor without copying it or waiting for a stream, and owning what keeps its memory alive.

Three ways, best first: the DLPack C exchange API (a C function on the tensor's type), ``__dlpack__``, and
``__cuda_array_interface__``.
"""

import sys

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

import numpy as np
from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as CoreView

from . import refusals
from .data_type import DLPACK_NAMES
from .errors import TensorMapError

DLPACK_VERSION = (1, 3)

cdef enum:
    COMPLEX_CODE = 5
    OPAQUE_CODE = 3        # what a view without a dtype shows
    FIRST_NARROW_CODE = 7  # the fp8, fp6 and fp4 types
    FLAG_IS_COPIED = 2
    MAX_NDIM = 64          # NumPy's; nothing that we read has more


cdef class ExportedTensor:
    def __cinit__(self):
        memset(&self.layout, 0, sizeof(self.layout))

    def __dealloc__(self):
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)
        if self.unversioned != NULL and self.unversioned.deleter != NULL:
            self.unversioned.deleter(self.unversioned)
        PyMem_Free(self.values)

    cdef uint64_t address(self) noexcept:
        return <uint64_t><uintptr_t>self.layout.data + self.layout.byte_offset

    cdef uint32_t dtype_key(self) noexcept:
        return self.layout.code | <uint32_t>self.layout.bits << 8 | <uint32_t>self.layout.lanes << 16

    cdef bint has_moved(self) except -1:
        """Whether the tensor's elements are elsewhere than they were, or cannot be found any more."""
        if self.source_address == 0:
            return False
        try:
            return export(self.source).address() != self.source_address
        except Exception:
            return True

    cdef tuple shape_tuple(self):
        return tuple([self.layout.shape[dim] for dim in range(self.layout.ndim)])

    cdef tuple strides_tuple(self):
        """Strides in elements; of a C-contiguous tensor where the exporter left them out."""
        if self.layout.strides != NULL:
            return tuple([self.layout.strides[dim] for dim in range(self.layout.ndim)])
        strides = []
        stride = 1
        for extent in reversed(self.shape_tuple()):
            strides.insert(0, stride)
            stride *= extent
        return tuple(strides)

    @property
    def data_pointer(self):
        return self.address()

    @property
    def shape(self):
        return self.shape_tuple()

    @property
    def strides(self):
        return self.strides_tuple()

    @property
    def dlpack_dtype(self):
        """(code, bits, lanes)."""
        return self.layout.code, self.layout.bits, self.layout.lanes

    @property
    def dlpack_device(self):
        """(device type, device id); the type is 0 where the exporter did not say."""
        return self.layout.device_type, self.layout.device_id

    @property
    def dtype_name(self):
        """The name of the element type, e.g. ``"float8_e4m3fn"``."""
        return dtype_name_of(self.dtype_key())

    def capsule(self):
        """A DLPack capsule of the same memory, which keeps this object alive.

        cuda.core's view cannot read the narrow floats, so they go out as unsigned integers of their size.
        """
        cdef DLManagedTensorVersioned* managed
        managed = <DLManagedTensorVersioned*>PyMem_Malloc(sizeof(DLManagedTensorVersioned))
        if managed == NULL:
            raise MemoryError
        managed.major, managed.minor = DLPACK_VERSION
        managed.flags = self.versioned.flags if self.versioned != NULL else 0
        managed.dl_tensor = self.layout
        if self.layout.code >= FIRST_NARROW_CODE:
            managed.dl_tensor.code = 1
            managed.dl_tensor.bits = <unsigned char>(self.layout.bits * self.layout.lanes)
            managed.dl_tensor.lanes = 1
        managed.manager_ctx = <void*>self
        managed.deleter = _release_exported
        capsule = PyCapsule_New(managed, b"dltensor_versioned", _delete_unused_capsule)
        Py_INCREF(self)
        return capsule


cdef void _release_exported(DLManagedTensorVersioned* managed) noexcept with gil:
    Py_DECREF(<object>managed.manager_ctx)
    PyMem_Free(managed)


cdef void _delete_unused_capsule(object capsule) noexcept:
    cdef DLManagedTensorVersioned* managed
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        managed.deleter(managed)


def dtype_name_of(uint32_t key):
    """The name of a DLPack dtype, given as ``code | bits << 8 | lanes << 16``."""
    dtype = key & 0xFF, key >> 8 & 0xFF, key >> 16
    if dtype[0] == OPAQUE_CODE:
        return f"untyped ({dtype[1] // 8}-byte elements)"
    return DLPACK_NAMES.get(dtype, "DLPack (code, bits, lanes) {}".format(dtype))


# ---- who exports ----

cdef class _Exporter:
    """What is known of a tensor type: its exchange table, and whose it is."""

    cdef DLPackExchangeAPI* api
    cdef bint is_torch
    cdef bint is_view      # our StridedMemoryView, which holds its export
    cdef bint is_borrower  # cuda.core's view and Buffer, which show memory that another object may own


cdef dict _exporters = {}  # type: _Exporter. Types are kept alive, so that an id cannot be reused.
cdef tuple _borrowers = (CoreView, Buffer)
cdef tuple _views = ()


def register_view(view_type, reexport_type):
    """Tell this module of our StridedMemoryView and of what it gives to cuda.core, which are built upon it."""
    global _borrowers, _views
    _views = (view_type,)
    _borrowers = (CoreView, Buffer, reexport_type)


cdef _Exporter _exporter_of(object tensor_type):
    cdef _Exporter exporter = _exporters.get(tensor_type)
    if exporter is None:
        exporter = _Exporter()
        torch = sys.modules.get("torch")
        exporter.is_torch = torch is not None and issubclass(tensor_type, torch.Tensor)
        exporter.is_view = issubclass(tensor_type, _views)
        exporter.is_borrower = issubclass(tensor_type, _borrowers)
        exporter.api = _exchange_api(tensor_type)
        _exporters[tensor_type] = exporter
    return exporter


cdef DLPackExchangeAPI* _exchange_api(object tensor_type) except? NULL:
    capsule = getattr(tensor_type, "__dlpack_c_exchange_api__", None)
    cdef DLPackExchangeAPI* api = NULL
    if capsule is not None and PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
        api = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
    while api != NULL and api.major != 1:
        api = api.previous
    return api


cdef ExportedTensor export(object tensor):
    """Export a tensor: torch, CuPy, JAX, numba-cuda, a cuda.core Buffer or view, or anything with one of the protocols.

    Raises
    ------
    TensorMapError
        If the tensor has none of the protocols, or is a conjugate or negative view, whose memory holds other values.
    """
    cdef _Exporter exporter = _exporter_of(type(tensor))
    if exporter.is_view:
        try:
            return tensor._exported
        except AttributeError:
            tensor._exported = tensor._describe()
            return tensor._exported
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    if exporter.is_torch:
        _adopt_torch(exported, tensor, exporter)
    elif exporter.api != NULL:
        _adopt_exchange(exported, tensor, exporter.api)
    elif hasattr(tensor, "__dlpack__"):
        _adopt_capsule(exported, _dlpack_capsule(tensor))
    elif hasattr(tensor, "__cuda_array_interface__"):
        _adopt_array_interface(exported, tensor.__cuda_array_interface__)
    else:
        raise refusals.no_tensor(tensor)
    exported.source = tensor
    exported.source_address = exported.address()
    if exporter.is_borrower:
        _own_what_is_behind(exported, tensor)
    return exported


cdef int _own_what_is_behind(ExportedTensor exported, object borrower) except -1:
    """Make the tensor behind a view or Buffer the source: its memory is the one to keep, and its address may change."""
    cdef ExportedTensor origin
    source = borrower
    while source is not None and _exporter_of(type(source)).is_borrower:
        exported.kept = exported.source = source
        source = getattr(source, "owner" if isinstance(source, Buffer) else "exporting_obj", None)
    exported.kept = borrower
    if hasattr(source, "__dlpack__") or hasattr(source, "__cuda_array_interface__"):
        origin = export(source)
        exported.source, exported.source_address, exported.storage = source, origin.address(), origin.storage
    return 0


def export_tensor(tensor):
    """:func:`export`, for Python."""
    return export(tensor)


def describe_tensor(shape, strides=None, dtype="float32", address=0, *, itemsize=None, borrower=None, device_id=-1):
    """An :class:`ExportedTensor` of plain values; of no memory, unless `borrower` is given.

    Parameters
    ----------
    shape, strides : sequence of int
        In tensor order; strides in elements, C-contiguous if None.
    dtype : str or None
        A dtype's name. None: elements of `itemsize` bytes, of which no more is known.
    address : int
        Address of the first element.
    borrower : object, optional
        Whose memory this is; what is behind it is kept alive.
    device_id : int
        The CUDA device that the memory is on; -1 asks the driver.

    Examples
    --------
    >>> describe_tensor((4, 8)).strides
    (8, 1)
    """
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    codes = {name: dlpack for dlpack, name in DLPACK_NAMES.items()}
    if dtype is None:
        codes[None] = OPAQUE_CODE, 8 * itemsize, 1
    if dtype not in codes:
        raise TensorMapError(f"dtype={dtype!r} is not one that TMA can move; choose one of {', '.join(codes)}")
    exported.layout.code, exported.layout.bits, exported.layout.lanes = codes[dtype]
    exported.layout.data = <void*><uintptr_t>address
    exported.layout.device_type = kDLCUDA if device_id >= 0 else 0
    exported.layout.device_id = device_id
    _set_values(exported, tuple(shape), None if strides is None else tuple(strides))
    exported.source = exported.kept = borrower
    if borrower is not None:
        _own_what_is_behind(exported, borrower)
    return exported


# ---- the ways to read ----

cdef int _adopt_torch(ExportedTensor exported, object tensor, _Exporter exporter) except -1:
    """torch: the storage owns the memory, so no managed tensor is needed beside it.

    A managed tensor would hold the TensorImpl, whose storage ``x.data = y`` and ``x.set_(y)`` swap and free under it.
    """
    _read_torch(exported, tensor, exporter)
    if tensor.is_neg():
        raise refusals.lazy_view("negative", "resolve_neg")
    if exported.layout.code == COMPLEX_CODE and tensor.is_conj():
        raise refusals.lazy_view("conjugate", "resolve_conj")
    exported.storage = tensor.untyped_storage()
    return 0


cdef int _read_torch(ExportedTensor exported, object tensor, _Exporter exporter) except -1:
    if exporter.api == NULL:
        return _adopt_capsule(exported, _dlpack_capsule(tensor.detach()))
    if exporter.api.dltensor_from_py_object_no_sync == NULL:
        return _adopt_exchange(exported, tensor, exporter.api)
    exporter.api.dltensor_from_py_object_no_sync(<void*>tensor, &exported.layout)
    if exported.layout.ndim > INLINE_NDIM:
        return _adopt_exchange(exported, tensor, exporter.api)
    # The tensor owns its shape and strides, and may change them.
    memcpy(exported.inline_values, exported.layout.shape, exported.layout.ndim * sizeof(int64_t))
    exported.layout.shape = exported.inline_values
    if exported.layout.strides != NULL:
        memcpy(exported.inline_values + INLINE_NDIM, exported.layout.strides, exported.layout.ndim * sizeof(int64_t))
        exported.layout.strides = exported.inline_values + INLINE_NDIM
    return 0


cdef int _adopt_exchange(ExportedTensor exported, object tensor, DLPackExchangeAPI* api) except -1:
    api.managed_tensor_from_py_object_no_sync(<void*>tensor, &exported.versioned)
    if exported.versioned == NULL:
        raise TensorMapError(f"{type(tensor).__name__} refused to export itself through DLPack, with no reason given")
    return _adopt_versioned(exported)


cdef int _adopt_versioned(ExportedTensor exported) except -1:
    if exported.versioned.major != 1:
        raise TensorMapError(f"the tensor exports DLPack {exported.versioned.major}; this reads DLPack 1")
    if exported.versioned.flags & FLAG_IS_COPIED:
        raise refusals.copied()
    exported.layout = exported.versioned.dl_tensor
    return 0


def _dlpack_capsule(tensor):
    """A DLPack capsule, asked for so that the host waits for nothing.

    The array API standard has stream=-1 for that. NumPy takes no stream for host memory. JAX 0.11 takes -1 for the
    handle of a stream and fails, and without a stream it waits for the array; given the legacy default stream (1), it
    lets that one wait (measured, with 0.35 s of work pending: 0.35 s without, 0.2 ms with it).
    """
    if tensor.__dlpack_device__()[0] not in (kDLCUDA, kDLCUDAManaged):
        return _versioned_capsule(tensor)
    try:
        return _versioned_capsule(tensor, stream=-1)
    except Exception:
        return _versioned_capsule(tensor, stream=1)


def _versioned_capsule(tensor, **keywords):
    try:
        return tensor.__dlpack__(max_version=DLPACK_VERSION, **keywords)
    except TypeError:  # an exporter from before DLPack 1.0 has no max_version
        return tensor.__dlpack__(**keywords)


cdef int _adopt_capsule(ExportedTensor exported, object capsule) except -1:
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        exported.versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return _adopt_versioned(exported)
    exported.unversioned = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
    PyCapsule_SetName(capsule, b"used_dltensor")
    exported.layout = exported.unversioned.dl_tensor
    return 0


_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # NumPy's kind: DLDataTypeCode


cdef int _adopt_array_interface(ExportedTensor exported, object interface) except -1:
    """``__cuda_array_interface__``, version 2 or 3. Source: Numba's documentation of the protocol."""
    dtype = np.dtype(interface["typestr"])
    if dtype.kind not in _KIND_CODES or not dtype.isnative:
        raise refusals.typestr(interface["typestr"])
    if interface.get("mask") is not None:
        raise refusals.mask()
    strides_bytes = interface.get("strides")
    strides = None
    if strides_bytes is not None:
        if any(stride % dtype.itemsize for stride in strides_bytes):
            raise refusals.byte_strides(tuple(strides_bytes), dtype.itemsize)
        strides = tuple(stride // dtype.itemsize for stride in strides_bytes)
    exported.layout.code = _KIND_CODES[dtype.kind]
    exported.layout.bits = dtype.itemsize * 8
    exported.layout.lanes = 1
    exported.layout.data = <void*><uintptr_t>interface["data"][0]
    return _set_values(exported, tuple(interface["shape"]), strides)


cdef int _set_values(ExportedTensor exported, tuple shape, tuple strides) except -1:
    cdef Py_ssize_t ndim = len(shape)
    if ndim > MAX_NDIM or (strides is not None and len(strides) != ndim):
        raise TensorMapError(f"shape {shape} and strides {strides} do not describe one tensor")
    exported.values = <int64_t*>PyMem_Malloc(2 * MAX_NDIM * sizeof(int64_t))
    if exported.values == NULL:
        raise MemoryError
    exported.layout.ndim = <int>ndim
    exported.layout.shape = exported.values
    exported.layout.strides = exported.values + MAX_NDIM
    elements = 1
    for dim in reversed(range(ndim)):
        exported.layout.shape[dim] = shape[dim]
        exported.layout.strides[dim] = elements if strides is None else strides[dim]
        elements *= shape[dim]
    return 0
