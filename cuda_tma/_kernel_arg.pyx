"""Packing a kernel's arguments into its parameter block, checked against the kernel's own parameters.

cuda.core 1.2 packs what it is given and checks nothing: too many arguments, a pointer in place of a descriptor, or a
Python float for a ``float`` parameter (which arrives as 0.0) all launch without an error (measured on an H200).
"""

import ctypes
import weakref

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport isfinite
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy

from ._dlpack cimport ExportedTensor, export, kDLCPU
from ._driver cimport CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUfunction, CUresult, driver, require_success
from ._tensor_map cimport MAP_BYTES, TensorMapDescriptor, require_gpu_memory

import numpy as np
from cuda.core import Buffer, Kernel
from cuda.core._kernel_arg_handler import ParamHolder

from . import refusals
from .mangled import parameter_kinds

try:
    from cuda.core.graph import GraphCondition
except ImportError:
    class GraphCondition:
        """A cuda.core without conditional graph nodes: nothing is an instance."""

try:
    from cuda.core import TensorMapDescriptor as _CoreDescriptor
except ImportError:
    class _CoreDescriptor:
        """A cuda.core without descriptors of its own: nothing is an instance."""

_CData = ctypes.c_int.__mro__[-2]  # the base of every ctypes value; ctypes gives it no public name
_CTYPES_KINDS = {"f": "float", "d": "float", "?": "bool", "P": "pointer", "z": "pointer", "Z": "pointer"}
_INT_RANGES = {size: (-(2 ** (8 * size - 1)), 2 ** (8 * size)) for size in (1, 2, 4, 8)}  # signed or unsigned
_NUMPY_KINDS = {"i": "integer", "u": "integer", "f": "float", "b": "bool", "c": None, "V": None}


cdef class Signature:
    def __dealloc__(self):
        PyMem_Free(self.offsets)
        PyMem_Free(self.sizes)


cdef dict _signatures = {}  # id(kernel): Signature, for as long as the kernel lives


cdef Signature signature_of(object kernel):
    key = id(kernel)
    cdef Signature signature = _signatures.get(key)
    if signature is None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is a {type(kernel).__name__}; launch takes a cuda.core.Kernel "
                            "(ObjectCode.get_kernel)")
        signature = _read_signature(kernel)
        signature.reference = weakref.ref(kernel, lambda _: _signatures.pop(key, None))
        _signatures[key] = signature
    return signature


cdef Signature _read_signature(object kernel):
    cdef Signature signature = Signature.__new__(Signature)
    cdef const char* name = NULL
    cdef size_t offset, size
    cdef Py_ssize_t index
    cdef CUresult result
    signature.function = <CUfunction><uintptr_t>int(kernel.handle)
    if driver.cuKernelGetParamInfo == NULL:
        raise RuntimeError("launch checks arguments against the kernel's parameters, which needs driver 550 "
                           "(CUDA 12.4) or later")
    while True:
        result = driver.cuKernelGetParamInfo(signature.function, signature.count, &offset, &size)
        if result == CUDA_ERROR_INVALID_VALUE:  # one past the last
            break
        require_success(result, "cuKernelGetParamInfo")
        signature.count += 1
    signature.offsets = <size_t*>PyMem_Malloc((signature.count + 1) * sizeof(size_t))
    signature.sizes = <size_t*>PyMem_Malloc((signature.count + 1) * sizeof(size_t))
    if signature.offsets == NULL or signature.sizes == NULL:
        raise MemoryError
    for index in range(signature.count):
        result = driver.cuKernelGetParamInfo(
            signature.function, index, &signature.offsets[index], &signature.sizes[index])
        require_success(result, "cuKernelGetParamInfo")
        signature.block_bytes = signature.offsets[index] + signature.sizes[index]
    if driver.cuKernelGetName != NULL and driver.cuKernelGetName(&name, signature.function) == CUDA_SUCCESS:
        signature.name = name.decode()
        kinds = parameter_kinds(signature.name)
        if kinds is not None and len(kinds) == signature.count:
            signature.kinds = kinds
    if signature.kinds is None:
        signature.kinds = (None,) * signature.count
    return signature


cdef str _where(Signature signature, Py_ssize_t index):
    return f"argument {index} of kernel {signature.name or '?'}"


cdef object _mismatch(Signature signature, Py_ssize_t index, str given, str remedy=""):
    size = signature.sizes[index]
    kind = signature.kinds[index]
    wanted = f"{'an' if kind == 'integer' else 'a'} {kind} of " if kind else ""
    if size == MAP_BYTES and not remedy:
        remedy = "; a parameter of 128 bytes takes a TensorMapDescriptor"
    return TypeError(f"{_where(signature, index)}: the parameter takes {wanted}{size} byte{'s' if size > 1 else ''}, "
                     f"and {given} was given{remedy}")


cdef int pack(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    """Write one argument to `slot`, its place in the parameter block, or say why it cannot be that parameter."""
    cdef type value_type = type(value)
    if value_type is TensorMapDescriptor:
        _require_map_parameter(signature, index, value)
        memcpy(slot, (<TensorMapDescriptor>value).map(), MAP_BYTES)
    elif value_type is int:
        _pack_int(signature, index, value, slot)
    elif value_type is float:
        _pack_float(signature, index, value, slot)
    elif value_type is bool:
        _pack_bool(signature, index, value, slot)
    elif value_type is Buffer:
        _pack_pointer(signature, index, value, int(value.handle), slot)
    elif isinstance(value, np.generic) and value.dtype.kind in _NUMPY_KINDS:
        _pack_bytes(signature, index, value, _NUMPY_KINDS[value.dtype.kind], slot)
    elif isinstance(value, _CData):
        _pack_bytes(signature, index, value, _ctypes_kind(value), slot)
    elif isinstance(value, int):
        _pack_int(signature, index, int(value), slot)
    elif isinstance(value, float):
        _pack_float(signature, index, value, slot)
    elif isinstance(value, complex):
        _pack_complex(signature, index, value, slot)
    elif isinstance(value, GraphCondition):
        _pack_pointer(signature, index, value, int(value.handle), slot)
    elif isinstance(value, _CoreDescriptor):
        _require_map_parameter(signature, index, value)
        holder = ParamHolder((value,))  # cuda.core's own way to the 128 bytes
        memcpy(slot, (<void**><uintptr_t>holder.ptr)[0], MAP_BYTES)
    else:
        _pack_array(signature, index, value, slot)
    return 0


cdef int _require_map_parameter(Signature signature, Py_ssize_t index, object value) except -1:
    if signature.sizes[index] != MAP_BYTES:
        raise _mismatch(signature, index, f"a {type(value).__name__} (128 bytes)",
                        "; declare the parameter as const __grid_constant__ CUtensorMap, by value")
    return 0


cdef int _pack_int(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    """An int takes the parameter's own size; its value must fit it, signed or unsigned."""
    cdef size_t size = signature.sizes[index]
    cdef object kind = signature.kinds[index]
    cdef uint64_t bits
    if size not in _INT_RANGES or kind == "float" or kind == "bool":
        raise _mismatch(signature, index, f"the int {value}",
                        f"; pass {value}.0" if kind == "float" else f"; pass bool({value})" if kind == "bool" else "")
    lowest, beyond = _INT_RANGES[size]
    if not lowest <= value < beyond:
        raise OverflowError(f"{_where(signature, index)}: {value} does not fit the parameter's {size} bytes, which hold "
                            f"{lowest} to {beyond - 1}")
    bits = value & 0xFFFFFFFFFFFFFFFF
    memcpy(slot, &bits, size)  # little-endian, as CUDA's hosts are
    return 0


cdef int _pack_bool(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    if signature.sizes[index] != 1 or signature.kinds[index] in ("float", "pointer"):
        raise _mismatch(signature, index, f"the bool {value} (1 byte)", f"; pass int({value})")
    slot[0] = value
    return 0


cdef int _pack_float(Signature signature, Py_ssize_t index, double value, unsigned char* slot) except -1:
    cdef float single = <float>value
    cdef size_t size = signature.sizes[index]
    kind = signature.kinds[index]
    if size not in (4, 8) or (kind is not None and kind != "float"):
        raise _mismatch(signature, index, f"the float {value}",
                        "; pass numpy.float16(value) or ml_dtypes.bfloat16(value)" if size == 2 else "")
    if size == 4:
        if isfinite(value) and not isfinite(single):
            raise OverflowError(f"{_where(signature, index)}: {value} does not fit a float")
        memcpy(slot, &single, 4)
    else:
        memcpy(slot, &value, 8)
    return 0


cdef int _pack_complex(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    cdef size_t size = signature.sizes[index]
    if size not in (8, 16) or signature.kinds[index] is not None:
        raise _mismatch(signature, index, f"the complex {value}")
    return _pack_bytes(signature, index, np.complex64(value) if size == 8 else np.complex128(value), None, slot)


cdef int _pack_bytes(Signature signature, Py_ssize_t index, object value, object kind, unsigned char* slot) except -1:
    """A numpy scalar (structured ones too) or a ctypes value: its bytes, which must be as many as the parameter's."""
    cdef Py_buffer buffer
    wanted = signature.kinds[index]
    PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    try:
        if buffer.len != <Py_ssize_t>signature.sizes[index] or not _kinds_agree(kind, wanted):
            raise _mismatch(signature, index, f"{value!r} ({type(value).__name__}, {buffer.len} bytes)")
        memcpy(slot, buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


def _kinds_agree(given, wanted):
    """Integers and pointers of the right size stand for each other; a float and a bool for their own kind alone."""
    own = ("float", "bool")
    return given is None or wanted is None or given == wanted or (given not in own and wanted not in own)


def _ctypes_kind(value):
    code = getattr(value, "_type_", None)
    if not isinstance(code, str):
        return None if not isinstance(value, ctypes._Pointer) else "pointer"
    return _CTYPES_KINDS.get(code, "integer")


cdef int _pack_pointer(
        Signature signature, Py_ssize_t index, object value, uint64_t address, unsigned char* slot) except -1:
    if signature.sizes[index] != 8 or signature.kinds[index] not in (None, "pointer", "integer"):
        raise _mismatch(signature, index, f"the address of a {type(value).__name__} (8 bytes)")
    memcpy(slot, &address, 8)
    return 0


cdef int _pack_array(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1:
    """An array: the address of its first element. A driver handle that is an int in disguise: that int."""
    cdef ExportedTensor exported
    if type(value).__module__.startswith("cuda.bindings") and hasattr(value, "__int__"):
        return _pack_pointer(signature, index, value, int(value), slot)
    try:
        exported = export(value)
        if exported.layout.device_type == kDLCPU:
            require_gpu_memory(exported.address(), -1)
        if exported.address() == 0 and 0 not in exported.shape:
            raise refusals.no_memory()
    except Exception as error:
        raise _mismatch(signature, index, f"a {type(value).__name__}", f" ({error})") from error
    return _pack_pointer(signature, index, value, exported.address(), slot)
