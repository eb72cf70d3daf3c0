"""The facts about a kernel that a launch needs.

The module reads the parameters once, from the driver and from names.

cuda.core does not keep the parameters, and the driver does not return their types; see _compile/parameter_types.py.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from .._cuda.driver cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUfunction, CUresult, driver, ensure_driver, require_success)
from .._read.weak_cache cimport Known, WeakCache, look_up, recent_of
from .._tensor_map cimport MAP_ALIGNMENT, MAP_BYTES
from .typed_map cimport typed_map

from cuda.core import Kernel

from .._map_type import MapPointer, MapType
from ..rules._configurations import NO_DIRECTIVES
from .._compile.compiled import compiled_of
from .._compile.parameter_types import types_of_name
from .._compile.plain_names import plain_name

_KINDS = {None: ANY, "integer": INTEGER, "float": FLOAT, "bool": BOOL, "pointer": POINTER}


cdef class Signature(Known):
    def __dealloc__(self):
        PyMem_Free(self.parameters)


cdef WeakCache _signatures = WeakCache()  # The cache maps a Kernel to its Signature.


cdef Signature signature_of(object kernel):
    cdef PyObject* recent = recent_of(<PyObject*>_signatures, kernel)
    if recent != NULL:
        return <Signature>recent
    cdef Signature signature = look_up(_signatures, kernel)
    if signature is None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel is a {type(kernel).__name__}; launch takes a cuda.core.Kernel "
                            "(ObjectCode.get_kernel)")
        signature = _read_signature(kernel)
        _signatures.put(kernel, signature)
    return signature


def name_of(kernel):
    """Return the name of a kernel for errors."""
    ensure_driver()
    return signature_of(kernel).name


def lowered_name_of(kernel):
    """Return the name of a kernel in PTX, in which C++ encodes types, or None with a driver before CUDA 12.3."""
    ensure_driver()
    return signature_of(kernel).lowered_name


def types_of(kernel):
    """Return the types of a kernel's parameters as in described_types, or None if they are unknown."""
    ensure_driver()
    return signature_of(kernel).types


def layout_of(kernel):
    """Return the offset and the size in bytes of each parameter in the block."""
    cdef Signature signature
    ensure_driver()
    signature = signature_of(kernel)
    return tuple([
        (signature.parameters[index].offset, signature.parameters[index].size) for index in range(signature.count)])


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
        parameter = _add_parameter(signature)
        with nogil:  # The driver's call may have to load the kernel, as in call.enter.
            result = driver.cuKernelGetParamInfo(
                signature.function, signature.count, &parameter.offset, &parameter.size)
        if result == CUDA_ERROR_INVALID_VALUE:  # The index is one past the last parameter.
            break
        require_success(result, "cuKernelGetParamInfo")
        _count_parameter(signature, parameter)
    if driver.cuKernelGetName != NULL and driver.cuKernelGetName(&name, signature.function) == CUDA_SUCCESS:
        signature.lowered_name = name.decode()
    _read_types(signature, compiled_of(kernel))
    return signature


def described(name, parameters, reach):
    """Return the signature of a kernel that exists without a driver.

    Parameters
    ----------
    The name of the kernel in errors.
        The name in errors.
    parameters : iterable of KernelParameter
    reach : callable
        The function that returns the address of an array for the kernel.
    """
    cdef Signature signature = Signature.__new__(Signature)
    cdef Parameter* parameter
    known = tuple(parameters)
    for each in known:
        parameter = _add_parameter(signature)
        parameter.offset, parameter.size = each.offset_bytes, each.size_bytes
        _count_parameter(signature, parameter)
    signature.name = name
    signature.parameter_names = tuple([each.name for each in known])
    signature.reach, signature.typed_maps = reach, []
    _set_types(signature, tuple([each.type for each in known]))
    return signature


cdef Parameter* _add_parameter(Signature signature) except NULL:
    """Return space for one more parameter, which is not yet part of the count."""
    signature.parameters = <Parameter*>PyMem_Realloc(
        signature.parameters, (signature.count + 1) * sizeof(Parameter))
    if signature.parameters == NULL:
        raise MemoryError
    return &signature.parameters[signature.count]


cdef int _count_parameter(Signature signature, Parameter* parameter) except -1:
    parameter.signature, parameter.index, parameter.kind = <PyObject*>signature, signature.count, ANY
    parameter.typed = parameter.pointed = NULL
    signature.block_bytes = parameter.offset + parameter.size
    signature.count += 1
    return 0


cdef int _read_types(Signature signature, object compiled) except -1:
    """Read the types of the parameters.

    The compiler reports the types of its kernels, and C++ names contain types.
    """
    types = types_of_name(signature.lowered_name or "") if compiled is None else compiled.types
    signature.shared_limits, signature.typed_maps, signature.parameter_names = {}, [], ()
    signature.name = plain_name(signature.lowered_name or "?") if compiled is None else compiled.name
    signature.directives = NO_DIRECTIVES if compiled is None else compiled.directives
    if compiled is not None:
        signature.dynamic_shared_bytes = compiled.dynamic_shared_bytes
        signature.parameter_names = compiled.parameter_names
    return 0 if types is None or len(types) != signature.count else _set_types(signature, types)


cdef int _set_types(Signature signature, tuple types) except -1:
    cdef Parameter* parameter
    signature.types = types
    for index, kind in enumerate(types):
        parameter = &signature.parameters[index]
        if isinstance(kind, MapPointer):
            parameter.kind = POINTER
            parameter.pointed = _keep_typed(signature, kind.target)
        elif isinstance(kind, MapType) and parameter.size == MAP_BYTES:
            parameter.typed = _keep_typed(signature, kind)
            # All typed maps of the kernel have the same value.
            signature.lead_bytes = -<Py_ssize_t>parameter.offset & (MAP_ALIGNMENT - 1)
        else:
            parameter.kind = _KINDS.get(kind, ANY)
    return 0


cdef PyObject* _keep_typed(Signature signature, object map_type) except NULL:
    typed = typed_map(map_type)
    signature.typed_maps.append(typed)
    return <PyObject*>typed


def place_of(Signature signature, Py_ssize_t index):
    """Return the place of an argument in an error, as where() does."""
    return where(&signature.parameters[index])


cdef str where(Parameter* parameter):
    """Return an argument's place for an error: its index, and the parameter's name if the name is known."""
    cdef Signature signature = <Signature>parameter.signature
    name = ""
    if len(signature.parameter_names) == signature.count and signature.parameter_names[parameter.index]:
        name = f" ({signature.parameter_names[parameter.index]})"
    return f"argument {parameter.index}{name} of kernel {signature.name}"
