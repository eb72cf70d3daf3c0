"""The arguments of a launch on the simulator.

The module checks each argument without a driver, and returns its bytes.

The function signature.described() returns the signature of a kernel on the simulator.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from .._kernel_arg cimport pack, pack_map, refuse_count, require_map_type, takes_tensor
from .signature cimport Parameter, Signature


def require_count(Signature signature, Py_ssize_t count):
    """Refuse a number of arguments that differs from the number of the kernel's parameters."""
    if count != signature.count:
        refuse_count(signature, count)


def wants_map_of(Signature signature, Py_ssize_t index, value):
    """Return whether an argument is an array for a typed map, so that a map must be made of the array."""
    cdef Parameter* parameter = &signature.parameters[index]
    return parameter.typed != NULL and takes_tensor(parameter, value)


def packed(Signature signature, Py_ssize_t index, value):
    """Return the bytes of an argument in the form of its parameter."""
    cdef Parameter* parameter = &signature.parameters[index]
    cdef bytes block = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack(parameter, value, <unsigned char*>PyBytes_AS_STRING(block))
    return block


def packed_map(Signature signature, Py_ssize_t index, bytes raw, bint is_wide):
    """Return the 128 bytes of an argument that is a tensor map."""
    cdef Parameter* parameter = &signature.parameters[index]
    cdef bytes block = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack_map(parameter, <const char*>raw, <unsigned char*>PyBytes_AS_STRING(block))
    if parameter.typed != NULL:
        require_map_type(parameter, <const char*>raw, is_wide)
    return block
