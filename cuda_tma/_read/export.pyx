"""Functions that read any tensor, without a copy or a wait for a stream.

The functions also return an owner that keeps the memory alive.

The module tries these methods in order: C functions of torch and CuPy, the DLPack C exchange API (a C function of the
tensor's type), ``__dlpack__``, and ``__cuda_array_interface__``.
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

cdef enum:  # The constants of the enum are values of DLDataTypeCode.
    UINT_CODE = 1
    BFLOAT_CODE = 4
    COMPLEX_CODE = 5


# A Getter has the type of tp_descr_get, and returns NULL with an error set.
ctypedef PyObject* (*Getter)(PyObject*, PyObject*, PyObject*) noexcept

cdef extern from *:
    """
    #define owned(reference) (reference)
    """
    object owned(PyObject*)  # The C function returns a new reference, which Cython counts as one reference.


# The descriptors of the view's __slots__ get and set the values of its instances.
cdef object _exported_slot = None
cdef object _storage_slot = None
cdef Getter _get_slot = NULL
cdef type CORE_VIEW = CoreView  # A C variable needs no look-up in the module's dictionary.


def register_view(view_type):
    """Register the package's class StridedMemoryView, which imports this module."""
    global _exported_slot, _storage_slot, _get_slot
    register_view_type(view_type)
    _exported_slot, _storage_slot = view_type._exported, view_type._storage
    _get_slot = <Getter>Py_TYPE(_exported_slot).tp_descr_get


# ---- reading ----

cdef object read(object tensor, Reading* reading):
    """Read a tensor for layout_of(), and return the owner of the layout and the memory.

    The errors are those of export().
    """
    cdef const Exporter* exporter = exporter_of(tensor)
    if exporter.source == VIEW:
        return _export_of_view(tensor)
    if exporter.source == TORCH and exporter.api != NULL and exporter.api.dltensor_from_py_object_no_sync != NULL:
        return _read_torch(tensor, exporter, &reading.room)
    if exporter.source == CUPY and _read_cupy(tensor, reading):
        return tensor
    return _exported(tensor, exporter)


cdef bint look_at_torch(object tensor, DLTensor* layout) except -1:
    """Read a torch tensor in place, and own nothing.

    Return False for another library's tensor, which read() reads.

    The result is for work that ends before Python code runs again, while the caller holds the tensor. A query of the
    tensor's storage would take as long as all other steps together.
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
    """Export a tensor: torch, CuPy, JAX, numba-cuda, a cuda.core Buffer or view, or an object with one of the
    protocols.

    Raises
    ------
    TensorMapError
        If the tensor supports none of the protocols. Also if it is a conjugate or negative view, whose memory contains
        other values.
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
    """Return the export in a view's slot by the slot's getter. A look-up by name takes a fifth of a map's time."""
    cdef PyObject* held = _get_slot(<PyObject*>_exported_slot, <PyObject*>view, <PyObject*>Py_TYPE(view))
    if held != NULL and held != <PyObject*>None:
        return owned(held)
    # The slot has no value yet, and an `except` clause would slow down every other access.
    PyErr_Clear()
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
    """Set the source to the tensor that a view or Buffer shows. Keep its memory alive; its address may change."""
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
            return  # The owner of a Buffer keeps memory alive, and need not be a tensor that can be read.
        exported.source, exported.source_address, exported.owner = origin.source, origin.source_address, origin.owner
    elif exported.source_address != 0 and isinstance(exported.source, Buffer):
        exported.source_address = int(exported.source.handle)  # The start of the view may be inside the Buffer.


def export_tensor(tensor):
    """Return the result of :func:`export` for a caller in Python."""
    return export(tensor)


def export_located(tensor):
    """Return the export of a tensor with its device, which a view of Buffers or of the CUDA array interface lacks."""
    cdef ExportedTensor exported = export(tensor)
    if exported.layout.device_type == 0:
        ensure_driver()
        try:
            locate(&exported.layout)
        except TensorMapError:  # The driver has no record of the memory.
            exported.layout.device_type, exported.layout.device_id = kDLCPU, 0
    return exported


cdef object _read_torch(object tensor, const Exporter* exporter, DLTensor* layout):
    """Read a torch tensor in place, and return the owner of its memory.

    The layout is read last, because any query of torch may run Python code (of a subclass or a mode) that resizes the
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
        raise _refusals.not_strided(tensor, error) from None  # The message of torch is a long text about C++ code.
    return owner


cdef object _adopt_torch(ExportedTensor exported, object tensor, const Exporter* exporter):
    """Read a tensor of torch 2.6 to 2.8, which lack the exchange API. First refuse tensors that torch would refuse."""
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

    A managed tensor would hold the TensorImpl. The calls ``x.data = y`` and ``x.set_(y)`` replace and free its storage.
    """
    _refuse_negative(tensor, exporter)
    return _call(exporter.untyped_storage, tensor, "untyped_storage")


cdef inline int _refuse_negative(object tensor, const Exporter* exporter) except -1:
    """Refuse a negative view of a tensor.

    A tensor of any dtype can be a negative view (``torch._neg_view``), even if torch does not mark the tensor as a view
    (inference mode). Therefore the function checks every tensor.
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
    """Refuse a conjugate view. Only complex tensors have the conjugate bit."""
    if _call(exporter.is_conj, tensor, "is_conj"):
        raise _refusals.lazy_view("conjugate", "resolve_conj")
    return 0


cdef inline object _call(NoArgsFunction function, object tensor, str name):
    return function(<PyObject*>tensor, NULL) if function != NULL else getattr(tensor, name)()


# ---- torch, with cuda.core's own reader ----

# The reader is from _cuda.core.torch_reader. The variable is False if the search did not find it.
cdef object _torch_reader = None
cdef bint _shows_bfloat16 = numpy_dtype("bfloat16").name == "bfloat16"
cdef tuple _NO_ARGUMENTS = ()


def torch_first(other_way):
    """Wrap a constructor of views, ``(cls, tensor, stream_ptr)``. Call it if _view_torch() returns None."""
    @wraps(other_way)
    def from_tensor(cls, obj, stream_ptr=None):
        view = _view_torch(cls, obj) if stream_ptr == -1 else None
        return other_way(cls, obj, stream_ptr) if view is None else view
    return from_tensor


cdef object _view_torch(object view_type, object tensor):
    """Return a view of a torch tensor that cuda.core fills itself, in a third of the time of an export by DLPack.

    If cuda.core does not fill the view, the result is None. The caller then uses export(), whose errors this function
    also raises. The view keeps the storage alive, as a descriptor does (_torch_owner). After the query, no code runs
    that may change the tensor.
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
    """Replace cuda.core's reader, and return the previous one.

    The result is False if the reader was not found, and None if no search has run.

    Tests use this function, because cuda.core supports its reader only with some releases of torch.
    """
    global _torch_reader
    before, _torch_reader = _torch_reader, reader
    return before


cdef bint _is_shown_by_core(const DLTensor* layout) noexcept:
    """Return whether cuda.core's view shows the dtype unchanged: no narrow floats, and of unsigned types only uint8."""
    if layout.code == UINT_CODE:
        return layout.bits == 8
    if layout.code == BFLOAT_CODE:
        return _shows_bfloat16
    return layout.code < FIRST_NARROW_CODE and not (layout.code == COMPLEX_CODE and layout.bits == 32)


def describe_torch_view(view, dtype):
    """Return the tensor of a view that cuda.core filled, as an export at the time when the view was made."""
    cdef ExportedTensor exported = ExportedTensor.__new__(ExportedTensor)
    put_dtype(&exported.layout, _numpy_dtype_key(dtype))
    exported.layout.data = <void*><uintptr_t>view.ptr
    exported.layout.device_type, exported.layout.device_id = kDLCPU, 0
    if view.is_device_accessible:
        exported.layout.device_type, exported.layout.device_id = kDLCUDA, view.device_id
    set_values(exported, view.shape, view.strides)
    exported.source, exported.source_address, exported.owner = view.exporting_obj, view.ptr, view._storage
    return exported


cdef dict _numpy_dtypes = {}  # The cache maps a NumPy dtype to its dtype_key(), or to None if DLPack lacks the dtype.


cdef bint _read_cupy(object array, Reading* reading) except -1:
    """Read CuPy's own attributes.

    Return False if the caller must use ``__dlpack__``, which is slower and queries the driver.

    The array itself keeps its memory alive, because nothing in CuPy lets an array release its memory.
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
    """Return whether the elements of a tensor have moved, or can no longer be found."""
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
