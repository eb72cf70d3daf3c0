"""Reading of any tensor without a copy or a wait for a stream, with an owner that keeps its memory alive.

The methods, best first: C functions of torch and CuPy, the DLPack C exchange API (a C function on the tensor's type),
``__dlpack__``, and ``__cuda_array_interface__``.
"""

from functools import wraps

from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from libc.stdint cimport int64_t, uint64_t, uintptr_t

from .context cimport locate
from .dlpack cimport (
    FIRST_NARROW_CODE, INLINE_NDIM, DLTensor, ExportedTensor, address_of, adopt_array_interface, adopt_capsule,
    adopt_exchange, copy_values, dlpack_capsule, kDLCPU, kDLCUDA, put_dtype, set_values)
from .exporter cimport BORROWER, CUPY, TORCH, VIEW, Exporter, NoArgsFunction, exporter_of, register_view_type
from .._cuda.driver cimport ensure_driver

from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as CoreView

from .._cuda.core import torch_reader
from .._data_type import DLPACK_DTYPES, numpy_dtype
from .._errors import TensorMapError
from ..rules import _refusals

cdef enum:  # DLDataTypeCode
    UINT_CODE = 1
    BFLOAT_CODE = 4
    COMPLEX_CODE = 5


ctypedef PyObject* (*Getter)(PyObject*, PyObject*, PyObject*) noexcept  # tp_descr_get; NULL with an error set

cdef extern from *:
    """
    #define owned(reference) (reference)
    """
    object owned(PyObject*)  # a C function's new reference, to be counted as one


cdef object _exported_slot = None  # the descriptors of our view's __slots__, to get and set its instances' values
cdef object _storage_slot = None
cdef Getter _get_slot = NULL
cdef type CORE_VIEW = CoreView  # a C variable: no look-up in the module's dictionary


def register_view(view_type):
    """Register our StridedMemoryView, which imports this module."""
    global _exported_slot, _storage_slot, _get_slot
    register_view_type(view_type)
    _exported_slot, _storage_slot = view_type._exported, view_type._storage
    _get_slot = <Getter>Py_TYPE(_exported_slot).tp_descr_get


# ---- reading ----

cdef object read(object tensor, Reading* reading):
    """Read a tensor for layout_of(), and return the owner of layout and memory. Errors: those of export()."""
    cdef const Exporter* exporter = exporter_of(tensor)
    if exporter.source == VIEW:
        return _export_of_view(tensor)
    if exporter.source == TORCH and exporter.api != NULL and exporter.api.dltensor_from_py_object_no_sync != NULL:
        return _read_torch(tensor, exporter, &reading.room)
    if exporter.source == CUPY and _read_cupy(tensor, reading):
        return tensor
    return _exported(tensor, exporter)


cdef bint look_at_torch(object tensor, DLTensor* layout) except -1:
    """Read a torch tensor in place and own nothing; return False if it is not torch's, which read() reads.

    The result is for work that is done before Python runs again, while the caller holds the tensor. A query of its
    storage would take as long as everything else.
    """
    cdef const Exporter* exporter = exporter_of(tensor)
    if exporter.source != TORCH or exporter.api == NULL or exporter.api.dltensor_from_py_object_no_sync == NULL:
        return False
    try:
        _refuse_negative(tensor, exporter)
        exporter.api.dltensor_from_py_object_no_sync(<void*>tensor, layout)
        if layout.code == COMPLEX_CODE:
            _refuse_conjugate(tensor, exporter)
            exporter.api.dltensor_from_py_object_no_sync(<void*>tensor, layout)
    except TensorMapError:
        raise
    except Exception as error:
        raise _refusals.not_strided(tensor, error) from None
    return True


cdef ExportedTensor export(object tensor):
    """Export a tensor: torch, CuPy, JAX, numba-cuda, a cuda.core Buffer or view, or anything with one of the protocols.

    Raises
    ------
    TensorMapError
        If the tensor has none of the protocols, or is a conjugate or negative view, whose memory contains other values.
    """
    cdef Reading reading
    cdef ExportedTensor exported
    owner = read(tensor, &reading)
    if isinstance(owner, ExportedTensor):
        return owner
    exported = ExportedTensor.__new__(ExportedTensor)
    copy_values(exported, &reading.room)
    return _with_owners(exported, tensor, owner)


cdef ExportedTensor _exported(object tensor, const Exporter* exporter):
    """Export a tensor that cannot be read in place."""
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    owner = None
    if isinstance(tensor, type):
        raise _refusals.no_tensor(tensor)
    if exporter.source == TORCH:
        owner = _adopt_torch(exported, tensor, exporter)
    elif exporter.api != NULL:
        adopt_exchange(exported, tensor, exporter.api)
    elif hasattr(tensor, "__dlpack__"):
        adopt_capsule(exported, dlpack_capsule(tensor))
    elif hasattr(tensor, "__cuda_array_interface__"):
        adopt_array_interface(exported, tensor.__cuda_array_interface__)
    else:
        raise _refusals.no_tensor(tensor)
    return _with_owners(exported, tensor, owner)


cdef ExportedTensor _export_of_view(object view):
    """Return the export in a view's slot, by the slot's own getter: a look-up by name takes a fifth of a map's time."""
    cdef PyObject* held = _get_slot(<PyObject*>_exported_slot, <PyObject*>view, <PyObject*>Py_TYPE(view))
    if held != NULL and held != <PyObject*>None:
        return owned(held)
    PyErr_Clear()  # nothing yet; catching that with `except` would slow down every other access
    view._exported = view._describe()
    return view._exported


cdef ExportedTensor _with_owners(ExportedTensor exported, object tensor, object owner):
    exported.source = tensor
    exported.source_address = address_of(&exported.layout)
    exported.owner = owner
    if exporter_of(tensor).source == BORROWER:
        borrow(exported, tensor)
    return exported


def borrow(ExportedTensor exported, borrower):
    """Make the tensor that a view or Buffer shows the source: its memory is kept alive, and its address may change."""
    cdef ExportedTensor origin
    source = exported.kept = exported.source = borrower
    while source is not None and exporter_of(source).source == BORROWER:
        exported.source = source
        source = getattr(source, "owner" if isinstance(source, Buffer) else "exporting_obj", None)
    if hasattr(source, "__dlpack__") or hasattr(source, "__cuda_array_interface__"):
        try:
            origin = export(source)
        except Exception:
            if not isinstance(exported.source, Buffer):
                raise
            exported.source_address = int(exported.source.handle)
            return  # a Buffer's owner keeps memory; it need not be a readable tensor
        exported.source, exported.source_address, exported.owner = origin.source, origin.source_address, origin.owner
    elif exported.source_address != 0 and isinstance(exported.source, Buffer):
        exported.source_address = int(exported.source.handle)  # the view may begin inside it


def export_tensor(tensor):
    """Call :func:`export` from Python."""
    return export(tensor)


def export_located(tensor):
    """Call :func:`export`, and add the device, which a view of Buffers or of ``__cuda_array_interface__`` lacks."""
    cdef ExportedTensor exported = export(tensor)
    if exported.layout.device_type == 0:
        ensure_driver()
        try:
            locate(&exported.layout)
        except TensorMapError:  # the driver has no record of the memory
            exported.layout.device_type, exported.layout.device_id = kDLCPU, 0
    return exported


cdef object _read_torch(object tensor, const Exporter* exporter, DLTensor* layout):
    """Read a torch tensor in place, and return the owner of its memory.

    The layout is read last, because any query of torch may run Python (a subclass's, or a mode's), which may resize the
    tensor.
    """
    try:
        owner = _torch_owner(tensor, exporter)
        exporter.api.dltensor_from_py_object_no_sync(<void*>tensor, layout)
        if layout.code == COMPLEX_CODE:
            _refuse_conjugate(tensor, exporter)
            owner = _torch_owner(tensor, exporter)
            exporter.api.dltensor_from_py_object_no_sync(<void*>tensor, layout)
    except TensorMapError:
        raise
    except Exception as error:
        raise _refusals.not_strided(tensor, error) from None  # torch's own message is a page of C++
    return owner


cdef object _adopt_torch(ExportedTensor exported, object tensor, const Exporter* exporter):
    """Read a tensor of a torch from before the exchange API (2.6 to 2.8); check first what its export would refuse."""
    try:
        owner = _torch_owner(tensor, exporter)
        _refuse_conjugate(tensor, exporter)
        adopt_capsule(exported, dlpack_capsule(tensor.detach()))
    except TensorMapError:
        raise
    except Exception as error:
        raise _refusals.not_strided(tensor, error) from None
    return owner


cdef object _torch_owner(object tensor, const Exporter* exporter):
    """Return the storage, which owns the memory, so that no managed tensor is needed.

    A managed tensor would hold the TensorImpl, whose storage ``x.data = y`` and ``x.set_(y)`` swap and free.
    """
    _refuse_negative(tensor, exporter)
    return _call(exporter.untyped_storage, tensor, "untyped_storage")


cdef inline int _refuse_negative(object tensor, const Exporter* exporter) except -1:
    """Refuse a negative view.

    A tensor of any dtype can be one (``torch._neg_view``), even if torch does not mark it as a view (inference mode).
    Therefore each is checked.
    """
    cdef bint is_negative
    if exporter.native_is_neg != NULL:
        is_negative = exporter.native_is_neg(<const char*><PyObject*>tensor + exporter.tensor_offset)
    else:
        is_negative = _call(exporter.is_neg, tensor, "is_neg")
    if is_negative:
        raise _refusals.lazy_view("negative", "resolve_neg")
    return 0


cdef int _refuse_conjugate(object tensor, const Exporter* exporter) except -1:
    """Refuse a conjugate view; only complex tensors have the bit."""
    if _call(exporter.is_conj, tensor, "is_conj"):
        raise _refusals.lazy_view("conjugate", "resolve_conj")
    return 0


cdef inline object _call(NoArgsFunction function, object tensor, str name):
    return function(<PyObject*>tensor, NULL) if function != NULL else getattr(tensor, name)()


# ---- torch, with cuda.core's own reader ----

cdef object _torch_reader = None  # of _cuda.core.torch_reader; False if it found nothing
cdef bint _shows_bfloat16 = numpy_dtype("bfloat16").name == "bfloat16"
cdef tuple _NO_ARGUMENTS = ()


def torch_first(other_way):
    """Wrap a constructor of views, ``(cls, tensor, stream_ptr)``, for the tensors that _view_torch() does not view."""
    @wraps(other_way)
    def from_tensor(cls, obj, stream_ptr=None):
        view = _view_torch(cls, obj) if stream_ptr == -1 else None
        return other_way(cls, obj, stream_ptr) if view is None else view
    return from_tensor


cdef object _view_torch(object view_type, object tensor):
    """Return a view of a torch tensor that cuda.core fills itself, in a third of the time of its export by DLPack.

    The result is None if it does not; then export() is used, whose errors are also raised here. The view keeps the
    storage, as a descriptor does (_torch_owner): after the query nothing runs that may change the tensor.
    """
    global _torch_reader
    cdef DLTensor layout
    cdef const Exporter* exporter = exporter_of(tensor)
    if exporter.source != TORCH or exporter.api == NULL or _torch_reader is False:
        return None
    if _torch_reader is None:
        _torch_reader = torch_reader(tensor) or False
        return _view_torch(view_type, tensor)
    storage = _read_torch(tensor, exporter, &layout)
    if not _is_shown_by_core(&layout):
        return None
    view = (<PyTypeObject*>CORE_VIEW).tp_new(view_type, <PyObject*>_NO_ARGUMENTS, NULL)
    Py_TYPE(_storage_slot).tp_descr_set(_storage_slot, view, storage)
    _torch_reader(tensor, -1, view)
    return view


def set_torch_reader(reader):
    """Replace cuda.core's reader; return the previous one: False if it was not found, None if not yet searched.

    It is for tests: cuda.core supports its reader only with some releases of torch.
    """
    global _torch_reader
    before, _torch_reader = _torch_reader, reader
    return before


cdef bint _is_shown_by_core(const DLTensor* layout) noexcept:
    """Return whether cuda.core's view shows the dtype unchanged: of the unsigned only uint8, and no narrow floats."""
    if layout.code == UINT_CODE:
        return layout.bits == 8
    if layout.code == BFLOAT_CODE:
        return _shows_bfloat16
    return layout.code < FIRST_NARROW_CODE and not (layout.code == COMPLEX_CODE and layout.bits == 32)


def describe_torch_view(view, dtype):
    """Return the tensor of such a view, as an export at the time when the view was made."""
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    put_dtype(&exported.layout, _numpy_dtype_key(dtype))
    exported.layout.data = <void*><uintptr_t>view.ptr
    exported.layout.device_type, exported.layout.device_id = kDLCPU, 0
    if view.is_device_accessible:
        exported.layout.device_type, exported.layout.device_id = kDLCUDA, view.device_id
    set_values(exported, view.shape, view.strides)
    exported.source, exported.source_address, exported.owner = view.exporting_obj, view.ptr, view._storage
    return exported


cdef dict _numpy_dtypes = {}  # NumPy dtype: its dtype_key(), or None if DLPack has none


cdef bint _read_cupy(object array, Reading* reading) except -1:
    """Read CuPy's own attributes; return False if ``__dlpack__``, which is slower and asks the driver, must be used.

    The array holds its memory: nothing in CuPy makes it release the memory.
    """
    cdef DLTensor* layout = &reading.room
    cdef tuple shape = array.shape
    cdef tuple strides_bytes = array.strides
    cdef int64_t element_bytes, stride_bytes
    cdef int dim
    key = _numpy_dtype_key(array.dtype)
    if key is None or len(shape) > INLINE_NDIM:
        return False
    put_dtype(layout, key)
    memory = array.data
    layout.data = <void*><uintptr_t>memory.ptr
    layout.byte_offset = 0
    layout.device_type, layout.device_id = kDLCUDA, memory.device_id
    layout.ndim = <int>len(shape)
    layout.shape, layout.strides = reading.values, reading.values + INLINE_NDIM
    element_bytes = layout.bits * layout.lanes // 8
    for dim in range(layout.ndim):
        stride_bytes = strides_bytes[dim]
        if stride_bytes % element_bytes:
            return False
        layout.shape[dim], layout.strides[dim] = shape[dim], stride_bytes // element_bytes
    return True


cdef inline object _numpy_dtype_key(object dtype):
    found = _numpy_dtypes.get(dtype, 0)
    if found == 0:
        keys = {name: code | bits << 8 | lanes << 16 for name, (code, bits, lanes) in DLPACK_DTYPES.items()}
        found = _numpy_dtypes[dtype] = keys.get(dtype.name) if dtype.isnative else None
    return found


# ---- later changes ----

cdef bint has_moved(object tensor, object owner, uint64_t address) except -1:
    """Return whether a tensor's elements have moved, or can no longer be found."""
    cdef Reading reading
    if isinstance(owner, ExportedTensor):
        address = (<ExportedTensor>owner).source_address
        if address == 0:
            return False
        tensor = (<ExportedTensor>owner).source
    try:
        owner = read(tensor, &reading)
        return address_of(layout_of(owner, &reading)) != address
    except Exception:
        return True
