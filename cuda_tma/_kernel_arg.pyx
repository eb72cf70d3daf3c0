"""Packing a kernel's arguments into its parameter block, checked against the kernel's own parameters.

cuda.core 1.2 packs what it is given and checks nothing: too many arguments, a pointer in place of a descriptor, or a
Python float for a ``float`` parameter (which arrives as 0.0) all launch without an error (measured on an H200).
"""

import ctypes

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.long cimport (
    PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong, PyLong_AsUnsignedLongLongMask, PyLong_CheckExact)
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.math cimport isfinite
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy

from ._read.context cimport locate
from ._read.dlpack cimport DLTensor, address_of, kDLCUDA, shape_of
from ._cuda.driver cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUfunction, CUresult, driver, require_success)
from ._read.export cimport Reading, layout_of, read
from ._read.exporter cimport is_of_known_type
from ._tensor_map cimport MAP_BYTES, TensorMapDescriptor
from ._read.weak_cache cimport Known, WeakCache, look_up

import numpy as np
from cuda.bindings.driver import CUtensorMap
from cuda.core import Buffer, Kernel

from ._cuda.core import GraphCondition, ParamHolder
from ._cuda.core import TensorMapDescriptor as _CoreDescriptor
from ._launch.mangled import MapPointer, parameter_types
from .rules import refusals

_CData = ctypes.c_int.__mro__[-2]  # the base of every ctypes value; ctypes gives it no public name
_KINDS = {None: ANY, "integer": INTEGER, "float": FLOAT, "bool": BOOL, "pointer": POINTER}
_CTYPES_KINDS = {"f": FLOAT, "d": FLOAT, "?": BOOL, "P": POINTER, "z": POINTER, "Z": POINTER}
# The scalars that are packed without asking for their buffer, which costs three times as much.
_NUMPY_NUMBERS = {
    **{np.dtype(f"{sign}int{8 * size}").type: (INTEGER, size) for sign in ("", "u") for size in (1, 2, 4, 8)},
    np.float32: (FLOAT, 4), np.float64: (FLOAT, 8), np.bool_: (BOOL, 1),
}
_NUMPY_KINDS = {"i": INTEGER, "u": INTEGER, "f": FLOAT, "b": BOOL, "c": ANY, "V": ANY}


cdef class Signature(Known):
    def __dealloc__(self):
        PyMem_Free(self.parameters)


cdef WeakCache _signatures = WeakCache()  # Kernel: Signature


cdef Signature signature_of(object kernel):
    cdef Signature signature = look_up(_signatures, kernel)
    if signature is None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is a {type(kernel).__name__}; launch takes a cuda.core.Kernel "
                            "(ObjectCode.get_kernel)")
        signature = _read_signature(kernel)
        _signatures.put(kernel, signature)
    return signature


cdef Signature _read_signature(object kernel):
    cdef Signature signature = Signature.__new__(Signature)
    cdef const char* name = NULL
    cdef Parameter* parameter
    cdef CUresult result
    signature.function = <CUfunction><uintptr_t>int(kernel.handle)
    if driver.cuKernelGetParamInfo == NULL:
        raise RuntimeError("launch checks arguments against the kernel's parameters, which needs driver 550 "
                           "(CUDA 12.4) or later")
    while True:
        signature.parameters = <Parameter*>PyMem_Realloc(
            signature.parameters, (signature.count + 1) * sizeof(Parameter))
        if signature.parameters == NULL:
            raise MemoryError
        parameter = &signature.parameters[signature.count]
        with nogil:  # as in _launch._enter: it may have to load the kernel
            result = driver.cuKernelGetParamInfo(
                signature.function, signature.count, &parameter.offset, &parameter.size)
        if result == CUDA_ERROR_INVALID_VALUE:  # one past the last
            break
        require_success(result, "cuKernelGetParamInfo")
        parameter.signature, parameter.index, parameter.kind = <PyObject*>signature, signature.count, ANY
        signature.block_bytes = parameter.offset + parameter.size
        signature.count += 1
    if driver.cuKernelGetName != NULL and driver.cuKernelGetName(&name, signature.function) == CUDA_SUCCESS:
        signature.name = name.decode()
        types = parameter_types(signature.name)
        if types is not None and len(types) == signature.count:
            for index, kind in enumerate(types):
                signature.parameters[index].kind = POINTER if isinstance(kind, MapPointer) else _KINDS.get(kind, ANY)
    return signature


cdef str _where(Parameter* parameter):
    return f"argument {parameter.index} of kernel {(<Signature>parameter.signature).name or '?'}"


cdef object _mismatch(Parameter* parameter, str given, str remedy=""):
    (kind,) = [name for name, kind in _KINDS.items() if kind == parameter.kind]
    wanted = f"{'an' if parameter.kind == INTEGER else 'a'} {kind} of " if kind else ""
    if parameter.size == MAP_BYTES and not remedy:
        remedy = "; a parameter of 128 bytes takes a TensorMapDescriptor"
    return TypeError(f"{_where(parameter)}: the parameter takes {wanted}{parameter.size} "
                     f"byte{'s' if parameter.size > 1 else ''}, and {given} was given{remedy}")


cdef int pack_all(Signature signature, tuple args, CUcontext context, unsigned char* block) except -1:
    """Write all arguments to the parameter block, and count the descriptors of another context than `context`."""
    cdef Parameter* parameter = signature.parameters
    cdef unsigned char* slot
    cdef PyObject* value
    cdef int foreign = 0
    cdef Py_ssize_t index, count = PyTuple_GET_SIZE(args)
    if count != signature.count:
        raise TypeError(f"kernel {signature.name or '?'} takes {signature.count} arguments, and {count} were given")
    for index in range(count):
        slot = block + parameter.offset
        value = PyTuple_GET_ITEM(args, index)
        if Py_TYPE(<object>value) == <PyTypeObject*>TensorMapDescriptor and parameter.size == MAP_BYTES:
            memcpy(slot, (<TensorMapDescriptor>value).map(), MAP_BYTES)
            foreign += (<TensorMapDescriptor>value)._context != context
        elif PyLong_CheckExact(<object>value):
            _pack_int(parameter, <object>value, slot)
        else:
            pack(parameter, <object>value, slot)
        parameter += 1
    return foreign


cdef int pack(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Write one argument to `slot`, its place in the parameter block, or say why it cannot be that parameter."""
    cdef type value_type = type(value)
    if value_type is TensorMapDescriptor:
        _pack_map(parameter, value, (<TensorMapDescriptor>value).map(), slot)
    elif value_type is int:
        _pack_int(parameter, value, slot)
    elif value_type is float:
        _pack_float(parameter, value, slot)
    elif value_type is bool:
        _pack_bool(parameter, value, slot)
    elif value_type is Buffer:
        _pack_buffer(parameter, value, slot)
    elif value_type in _NUMPY_NUMBERS:
        _pack_number(parameter, value, slot)
    elif is_of_known_type(value):  # as all that is left is asked below, one type after the other
        _pack_array(parameter, value, slot)
    elif isinstance(value, np.generic) and value.dtype.kind in _NUMPY_KINDS:
        _pack_bytes(parameter, value, _NUMPY_KINDS[value.dtype.kind], slot)
    elif isinstance(value, _CData):
        _pack_bytes(parameter, value, _ctypes_kind(value), slot)
    elif isinstance(value, int):
        _pack_int(parameter, int(value), slot)
    elif isinstance(value, float):
        _pack_float(parameter, value, slot)
    elif isinstance(value, complex):
        _pack_complex(parameter, value, slot)
    elif isinstance(value, GraphCondition):
        _pack_pointer(parameter, value, int(value.handle), slot)
    elif isinstance(value, _CoreDescriptor):
        holder = ParamHolder((value,))  # cuda.core's own way to the 128 bytes
        _pack_map(parameter, value, (<void**><uintptr_t>holder.ptr)[0], slot)
    elif isinstance(value, CUtensorMap):  # filled by cuTensorMapEncode...: no more is known of it
        _pack_map(parameter, value, <void*><uintptr_t>value.getPtr(), slot)
    elif str(value_type.__module__).startswith("cuda.bindings") and hasattr(value, "__int__"):
        _pack_pointer(parameter, value, int(value), slot)  # a driver handle
    else:
        _pack_array(parameter, value, slot)
    return 0


cdef inline int _pack_map(Parameter* parameter, object value, const void* map, unsigned char* slot) except -1:
    if parameter.size != MAP_BYTES:
        raise _mismatch(parameter, f"a {type(value).__name__} (128 bytes)",
                        "; declare the parameter as const __grid_constant__ CUtensorMap, by value")
    memcpy(slot, map, MAP_BYTES)
    return 0


cdef int _pack_int(Parameter* parameter, object value, unsigned char* slot) except -1:
    """An int takes the parameter's own size; its value must fit it, signed or unsigned."""
    cdef size_t size = parameter.size
    cdef Kind kind = parameter.kind
    cdef int overflow = 0
    cdef long long bits
    if (size != 8 and size != 4 and size != 1 and size != 2) or kind == FLOAT or kind == BOOL:
        shown = _shown_int(value)
        raise _mismatch(parameter, f"the int {shown}",
                        f"; pass {shown}.0" if kind == FLOAT else f"; pass bool({shown})" if kind == BOOL else "")
    bits = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow > 0 and size == 8 and value < 2**64:
        bits = <long long>PyLong_AsUnsignedLongLong(value)
    elif overflow or (size < 8 and not -(1LL << (8 * size - 1)) <= bits < (1LL << (8 * size))):
        lowest, beyond = -(2 ** (8 * <object>size - 1)), 2 ** (8 * <object>size)
        raise OverflowError(f"{_where(parameter)}: {_shown_int(value)} does not fit the parameter's {size} "
                            f"bytes, which hold {lowest} to {beyond - 1}")
    if size == 8:
        memcpy(slot, &bits, 8)  # a pointer, mostly: one instruction, where a size that is not known is a call
    else:
        memcpy(slot, &bits, size)  # little-endian, as CUDA's hosts are
    return 0


cdef object _shown_int(object value):
    """Python writes no int of thousands of digits."""
    return value if value.bit_length() <= 128 else f"<{value.bit_length()} bits>"


cdef int _pack_bool(Parameter* parameter, object value, unsigned char* slot) except -1:
    cdef Kind kind = parameter.kind
    if parameter.size != 1 or kind == FLOAT or kind == POINTER:
        raise _mismatch(parameter, f"the bool {value} (1 byte)", f"; pass int({value})")
    slot[0] = value is True
    return 0


cdef int _pack_float(Parameter* parameter, double value, unsigned char* slot) except -1:
    cdef float single = <float>value
    cdef size_t size = parameter.size
    cdef Kind kind = parameter.kind
    if (size != 4 and size != 8) or (kind != ANY and kind != FLOAT):
        raise _mismatch(parameter, f"the float {value}",
                        "; pass numpy.float16(value) or ml_dtypes.bfloat16(value)" if size == 2 else "")
    if size == 8:
        memcpy(slot, &value, 8)
        return 0
    if isfinite(value) and not isfinite(single):
        raise OverflowError(f"{_where(parameter)}: {value} does not fit a float")
    memcpy(slot, &single, 4)
    return 0


cdef int _pack_complex(Parameter* parameter, object value, unsigned char* slot) except -1:
    cdef size_t size = parameter.size
    if (size != 8 and size != 16) or parameter.kind != ANY:
        raise _mismatch(parameter, f"the complex {value}")
    return _pack_bytes(parameter, np.complex64(value) if size == 8 else np.complex128(value), ANY, slot)


cdef int _pack_number(Parameter* parameter, object value, unsigned char* slot) except -1:
    """A numpy integer, float32, float64 or bool, whose size must be the parameter's."""
    cdef Kind kind
    cdef size_t size
    cdef unsigned long long bits
    cdef double number
    cdef float single
    kind, size = <tuple>_NUMPY_NUMBERS[type(value)]
    if size != parameter.size or not _kinds_agree(kind, parameter.kind):
        raise _mismatch(parameter, f"{value!r} ({type(value).__name__}, {size} bytes)")
    if kind != FLOAT:
        bits = PyLong_AsUnsignedLongLongMask(int(value))
        memcpy(slot, &bits, size)
        return 0
    number = value
    single = <float>number
    if size == 8:
        memcpy(slot, &number, 8)
    else:
        memcpy(slot, &single, 4)
    return 0


cdef int _pack_bytes(Parameter* parameter, object value, Kind kind, unsigned char* slot) except -1:
    """A numpy scalar (structured ones too) or a ctypes value: its bytes, which must be as many as the parameter's."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    try:
        if <size_t>buffer.len != parameter.size or not _kinds_agree(kind, parameter.kind):
            raise _mismatch(parameter, f"{value!r} ({type(value).__name__}, {buffer.len} bytes)")
        memcpy(slot, buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


cdef bint _kinds_agree(Kind given, Kind wanted) noexcept:
    """Integers and pointers of the right size stand for each other; a float and a bool for their own kind alone."""
    cdef bint own = given == FLOAT or given == BOOL or wanted == FLOAT or wanted == BOOL
    return given == ANY or wanted == ANY or given == wanted or not own


cdef Kind _ctypes_kind(object value):
    code = getattr(value, "_type_", None)
    if isinstance(code, str):
        return _CTYPES_KINDS.get(code, INTEGER)
    return POINTER if isinstance(value, ctypes._Pointer) else ANY


cdef int _pack_pointer(
        Parameter* parameter, object value, uint64_t address, unsigned char* slot) except -1:
    cdef Kind kind = parameter.kind
    if parameter.size != 8 or kind == FLOAT or kind == BOOL:
        raise _mismatch(parameter, f"the address of a {type(value).__name__} (8 bytes)")
    memcpy(slot, &address, 8)
    return 0


cdef int _pack_buffer(Parameter* parameter, object value, unsigned char* slot) except -1:
    cdef uint64_t address = int(value.handle)
    if address == 0:  # closed, which its export says, or empty
        return _pack_array(parameter, value, slot)
    return _pack_pointer(parameter, value, address, slot)


cdef int _pack_array(Parameter* parameter, object value, unsigned char* slot) except -1:
    """An array: the address of its first element."""
    cdef Reading reading
    cdef DLTensor* tensor
    try:
        owner = read(value, &reading)  # keeps what was read
        tensor = layout_of(owner, &reading)
        if tensor.device_type != kDLCUDA and tensor.device_type != 0:  # 0: a Buffer's or CUDA array's
            locate(tensor)
        if address_of(tensor) == 0 and 0 not in shape_of(tensor):
            raise refusals.no_memory()
    except Exception as error:
        raise _mismatch(parameter, f"a {type(value).__name__}", f" ({error})") from error
    return _pack_pointer(parameter, value, address_of(tensor), slot)
