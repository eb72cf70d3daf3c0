"""The functions that pack a kernel's arguments into its parameter block, and check them against its parameters.

cuda.core 1.2 packs its arguments without checks. Too many arguments, or a pointer in place of a descriptor, launch
without an error. So does a Python float for a ``float`` parameter, which the kernel reads as 0.0 (measured on an H200).
"""

import ctypes

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.long cimport (
    PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong, PyLong_AsUnsignedLongLongMask, PyLong_CheckExact)
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.math cimport isfinite
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy

from ._cuda.driver cimport CUcontext
from ._launch.array_address cimport address_of_array, reached
from ._read.exporter cimport is_of_known_type
from ._launch.signature cimport ANY, BOOL, FLOAT, INTEGER, POINTER, Kind, Parameter, Signature, where
from ._make.uploads cimport KIND_COUNT, UploadedMaps, uploaded_to
from ._launch.typed_map cimport TypedMap, is_of_type, make
from ._tensor_map cimport MAP_BYTES, TensorMapDescriptor, copy_map

import numpy as np
from cuda.bindings.driver import CUtensorMap
from cuda.core import Buffer

from ._cuda.core import GraphCondition, ParamHolder
from ._cuda.core import TensorMapDescriptor as _CoreDescriptor
from ._errors import TensorMapError
from ._given import argument_count
from ._options import TensorMapIm2colWideOptions
from .rules import _launches

_CData = ctypes.c_int.__mro__[-2]  # _CData is the base of every ctypes value, for which ctypes has no public name.
_KIND_NAMES = {ANY: None, INTEGER: "integer", FLOAT: "float", BOOL: "bool", POINTER: "pointer"}
_CTYPES_KINDS = {"f": FLOAT, "d": FLOAT, "?": BOOL, "P": POINTER, "z": POINTER, "Z": POINTER}
# NumPy's scalars are packed without a request for their buffer, because the request costs three times as much.
_NUMPY_NUMBERS = {
    **{np.dtype(f"{sign}int{8 * size}").type: (INTEGER, size) for sign in ("", "u") for size in (1, 2, 4, 8)},
    np.float32: (FLOAT, 4), np.float64: (FLOAT, 8), np.bool_: (BOOL, 1),
}
_BYTES = (bytes, bytearray, memoryview)  # Objects of the types in _BYTES contain the bytes of a struct.
_NO_TENSORS = (  # Values of the types in _NO_TENSORS are not tensors.
    TensorMapDescriptor, int, float, complex, np.generic, _CData, GraphCondition, _CoreDescriptor, CUtensorMap, *_BYTES)
_NUMPY_KINDS = {"i": INTEGER, "u": INTEGER, "f": FLOAT, "b": BOOL, "c": ANY, "V": ANY}


cdef object _mismatch(Parameter* parameter, str given, str remedy=""):
    kind = _KIND_NAMES[parameter.kind]
    wanted = f"{'an' if parameter.kind == INTEGER else 'a'} {kind} of " if kind else ""
    if parameter.typed != NULL:
        wanted = f"{(<TypedMap>parameter.typed).map_type} of "
        remedy = "; pass a tensor or a TensorMapDescriptor"
    elif parameter.size == MAP_BYTES and not remedy:
        remedy = "; a parameter of 128 bytes takes a TensorMapDescriptor"
    return TypeError(f"{where(parameter)}: the parameter takes {wanted}{parameter.size} "
                     f"byte{'s' if parameter.size > 1 else ''}, and {given} was passed{remedy}")


cdef int pack_all(
        Signature signature, tuple args, CUcontext context, unsigned char* block, CUcontext* made) except -1:
    """Write all arguments to the parameter block. Count the maps that belong to a context other than `context`.

    Set `made` to the current context if the function made maps of tensors in that context. Otherwise set `made` to
    NULL.
    """
    cdef Parameter* parameter = signature.parameters
    cdef unsigned char* slot
    cdef PyObject* value
    cdef int foreign = 0
    cdef int device_id = 0
    cdef Py_ssize_t index, count = PyTuple_GET_SIZE(args)
    if count != signature.count:
        refuse_count(signature, count)
    made[0] = NULL
    for index in range(count):
        slot = block + parameter.offset
        value = PyTuple_GET_ITEM(args, index)
        if Py_TYPE(<object>value) == <PyTypeObject*>TensorMapDescriptor and parameter.size == MAP_BYTES:
            if parameter.typed != NULL:
                require_type(parameter, <object>value, (<TensorMapDescriptor>value).map())
            copy_map(<TensorMapDescriptor>value, slot)
            foreign += (<TensorMapDescriptor>value)._context != context
        elif PyLong_CheckExact(<object>value):
            _pack_int(parameter, <object>value, slot)
        elif parameter.typed != NULL and takes_tensor(parameter, <object>value):
            _make_map(parameter, <object>value, slot, made, &device_id)
        else:
            pack(parameter, <object>value, slot)
        parameter += 1
    return foreign + (made[0] != NULL and made[0] != context)


cdef int refuse_count(Signature signature, Py_ssize_t count) except -1:
    raise TypeError(argument_count(f"kernel {signature.name}", signature.count, count))


cdef inline int _make_map(
        Parameter* parameter, object tensor, unsigned char* slot, CUcontext* made, int* device_id) except -1:
    try:
        return make(<TypedMap>parameter.typed, tensor, slot, made, device_id)
    except TensorMapError as error:
        raise _launches.tensor(where(parameter), (<TypedMap>parameter.typed).map_type, error) from error


cdef bint takes_tensor(Parameter* parameter, object value) except -1:
    """Return whether the argument of a typed map is a tensor or of an unknown type, so that a map must be made."""
    if not is_of_known_type(value) and isinstance(value, _NO_TENSORS):
        return False
    if (<TypedMap>parameter.typed).options is None:
        raise _launches.im2col_tensor(where(parameter), (<TypedMap>parameter.typed).map_type, value)
    return True


cdef inline int require_type(Parameter* parameter, object value, const void* map) except -1:
    """Refuse a map that does not have the type of the parameter."""
    cdef TypedMap typed = <TypedMap>parameter.typed
    if is_of_type(typed, map) and (typed.options is not None or not _is_wide(value)):
        return 0
    return require_map_type(parameter, map, _is_wide(value))


cdef int require_map_type(Parameter* parameter, const void* map, bint is_wide) except -1:
    """Refuse a map that does not have the parameter's type. `is_wide` is whether the map's options are im2col wide."""
    cdef TypedMap typed = <TypedMap>parameter.typed
    if is_of_type(typed, map) and (typed.options is not None or not is_wide):
        return 0
    raise _launches.other_map(where(parameter), typed.map_type, (<const char*>map)[:MAP_BYTES], is_wide)


cdef bint _is_wide(object value) except -1:
    """Return whether the value is known to contain im2col wide maps. The bytes of a map do not show its mode."""
    options = None
    if isinstance(value, TensorMapDescriptor):
        options = (<TensorMapDescriptor>value)._options
    elif isinstance(value, UploadedMaps):
        options = (<UploadedMaps>value).options
    return isinstance(options, TensorMapIm2colWideOptions)


cdef int _require_uploaded_type(Parameter* parameter, object buffer) except -1:
    """Refuse the Buffer of a TensorMapArray if its maps do not have the type that the parameter points to."""
    cdef TypedMap typed = <TypedMap>parameter.pointed
    cdef UploadedMaps maps = uploaded_to(buffer)
    cdef int index
    if maps is None:
        return 0
    for index in range(KIND_COUNT):
        if not is_of_type(typed, maps.kinds[index]) or (typed.options is None and _is_wide(maps)):
            raise _launches.other_maps(
                where(parameter), typed.map_type, (<const char*>maps.kinds[index])[:MAP_BYTES], _is_wide(maps))
    return 0


cdef int pack(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Write one argument to `slot`, its place in the parameter block. Raise an error if the argument does not fit."""
    _pack(parameter, value, slot)
    return 0 if parameter.typed == NULL else require_type(parameter, value, slot)


cdef int _pack(Parameter* parameter, object value, unsigned char* slot) except -1:
    cdef type value_type = type(value)
    if value_type is TensorMapDescriptor:
        with cython.critical_section(value):
            pack_map(parameter, (<TensorMapDescriptor>value).map(), slot)
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
    elif is_of_known_type(value):  # The branches after this one test the remaining types in turn.
        _pack_array(parameter, value, slot)
    elif isinstance(value, np.generic) and value.dtype.kind in _NUMPY_KINDS:
        _pack_bytes(parameter, value, _NUMPY_KINDS[value.dtype.kind], slot)
    elif isinstance(value, _CData):
        _pack_bytes(parameter, value, _ctypes_kind(value), slot)
    elif isinstance(value, _BYTES):
        _pack_struct(parameter, value, slot)
    elif isinstance(value, int):
        _pack_int(parameter, int(value), slot)
    elif isinstance(value, float):
        _pack_float(parameter, value, slot)
    elif isinstance(value, complex):
        _pack_complex(parameter, value, slot)
    elif isinstance(value, GraphCondition):
        _pack_pointer(parameter, value, int(value.handle), slot)
    elif isinstance(value, (_CoreDescriptor, CUtensorMap)):
        _pack_foreign_map(parameter, value, slot)
    elif str(value_type.__module__).startswith("cuda.bindings") and hasattr(value, "__int__"):
        # A value of cuda.bindings that converts to an int is a handle of the driver.
        _pack_pointer(parameter, value, int(value), slot)
    else:
        _pack_array(parameter, value, slot)
    return 0


cdef int _pack_foreign_map(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Pack a map of cuda.core or cuda.bindings, for which the package has only the 128 bytes."""
    if isinstance(value, CUtensorMap):
        return pack_map(parameter, <void*><uintptr_t>value.getPtr(), slot)
    holder = ParamHolder((value,))  # Only ParamHolder of cuda.core reads the bytes of its map.
    return pack_map(parameter, (<void**><uintptr_t>holder.ptr)[0], slot)


cdef int _pack_struct(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Pack the bytes of a struct, or of a tensor map."""
    if parameter.kind != ANY:
        raise _mismatch(parameter, f"a {type(value).__name__}", "; bytes are for a struct or a tensor map")
    return _pack_bytes(parameter, bytes(value) if type(value) is memoryview else value, ANY, slot)


cdef int pack_map(Parameter* parameter, const void* map, unsigned char* slot) except -1:
    if parameter.size != MAP_BYTES:
        raise _mismatch(parameter, "a tensor map (128 bytes)",
                        "; declare the parameter as const __grid_constant__ CUtensorMap, by value")
    memcpy(slot, map, MAP_BYTES)
    return 0


cdef int _pack_int(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Pack an int in the size of the parameter. Refuse a value that does not fit as a signed or an unsigned number."""
    cdef size_t size = parameter.size
    cdef Kind kind = parameter.kind
    cdef int overflow = 0
    cdef long long bits
    if (size != 8 and size != 4 and size != 1 and size != 2) or kind == FLOAT or kind == BOOL:
        raise _mismatch(parameter, f"the int {_shown_int(value)}", _int_remedy(kind, value))
    bits = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow > 0 and size == 8 and value < 2**64:
        bits = <long long>PyLong_AsUnsignedLongLong(value)
    elif overflow or (size < 8 and not -(1LL << (8 * size - 1)) <= bits < (1LL << (8 * size))):
        lowest, beyond = -(2 ** (8 * <object>size - 1)), 2 ** (8 * <object>size)
        raise OverflowError(f"{where(parameter)}: {_shown_int(value)} does not fit the parameter's {size} "
                            f"bytes, whose range is {lowest} to {beyond - 1}")
    if size == 8:
        # A value of 8 bytes is usually a pointer. A copy of a fixed size is one instruction, and one of variable size
        # is a call.
        memcpy(slot, &bits, 8)
    else:
        memcpy(slot, &bits, size)  # The bytes are little-endian, as on the hosts that CUDA supports.
    return 0


cdef str _int_remedy(Kind kind, object value):
    if kind == BOOL:
        return f"; pass bool({_shown_int(value)})"
    if kind == FLOAT:
        # A double represents integers of up to 53 bits exactly.
        return f"; pass {value}.0" if value.bit_length() <= 53 else "; pass a float"
    return ""


cdef object _shown_int(object value):
    """Return the text of an int for a message. Python does not write an int of thousands of digits."""
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
        raise OverflowError(f"{where(parameter)}: {value} does not fit a float")
    memcpy(slot, &single, 4)
    return 0


cdef int _pack_complex(Parameter* parameter, object value, unsigned char* slot) except -1:
    cdef size_t size = parameter.size
    if (size != 8 and size != 16) or parameter.kind != ANY:
        raise _mismatch(parameter, f"the complex {value}")
    return _pack_bytes(parameter, np.complex64(value) if size == 8 else np.complex128(value), ANY, slot)


cdef int _pack_number(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Pack a NumPy integer, float32, float64 or bool. Refuse a value whose size differs from the parameter's size."""
    cdef Kind kind
    cdef size_t size
    cdef unsigned long long bits
    cdef double number
    cdef float single
    kind, size = <tuple>_NUMPY_NUMBERS[type(value)]
    if size != parameter.size or not _kinds_agree(kind, parameter.kind):
        raise _mismatch(
            parameter, f"{value!r} ({type(value).__name__}, {size} bytes)", _number_remedy(parameter, kind))
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


cdef str _number_remedy(Parameter* parameter, Kind kind):
    """Return the remedy for a number of the wrong size. NumPy's numbers keep their size, and Python's adapt to it."""
    if kind == INTEGER and parameter.kind in (ANY, INTEGER) and parameter.size <= 8:
        return "; pass int(value)"
    if kind == FLOAT and parameter.kind in (ANY, FLOAT) and parameter.size in (4, 8):
        return "; pass float(value)"
    return ""


cdef int _pack_bytes(Parameter* parameter, object value, Kind kind, unsigned char* slot) except -1:
    """Pack the bytes of a NumPy scalar (also a structured one) or a ctypes value.

    Refuse a value whose size differs from the parameter's size.
    """
    cdef Py_buffer buffer
    PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    try:
        if <size_t>buffer.len != parameter.size or not _kinds_agree(kind, parameter.kind):
            raise _mismatch(
                parameter, f"{value!r:.100} ({type(value).__name__}, {buffer.len} bytes)",
                _number_remedy(parameter, kind) if isinstance(value, np.generic) else "")
        memcpy(slot, buffer.buf, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


cdef bint _kinds_agree(Kind given, Kind wanted) noexcept:
    """Return whether two kinds agree. Integers and pointers agree, and a float or bool only with its own kind."""
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
    if parameter.pointed != NULL:
        _require_uploaded_type(parameter, value)
    if address == 0:  # The array is closed or empty, and the export of a closed array raises an error.
        return _pack_array(parameter, value, slot)
    return _pack_pointer(parameter, value, address, slot)


cdef int _pack_array(Parameter* parameter, object value, unsigned char* slot) except -1:
    """Pack the address of an array's first element."""
    cdef uint64_t address
    reach = (<Signature>parameter.signature).reach
    if parameter.size != 8 and getattr(value, "shape", None) == () and hasattr(value, "item"):
        raise _mismatch(parameter, f"a {type(value).__name__} of shape ()", "; pass value.item()")
    try:
        address = address_of_array(value) if reach is None else reached(reach, value)
    except Exception as error:
        if reach is not None and isinstance(error, ValueError) and not isinstance(error, TensorMapError):
            raise  # The simulator cannot map the memory of the array.
        raise _mismatch(parameter, f"a {type(value).__name__}", f" ({error})") from error
    return _pack_pointer(parameter, value, address, slot)
