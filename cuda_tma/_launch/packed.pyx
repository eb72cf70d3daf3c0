"""Checked arguments of a launch on the simulator: each argument of a kernel without a driver, as bytes.

signature.described() returns the signature of such a kernel.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from .._kernel_arg cimport pack, pack_map, refuse_count, require_map_type, takes_tensor
from .signature cimport Parameter, Signature


def require_count(Signature signature, Py_ssize_t count):
    """Refuse another number of arguments than the kernel has parameters."""
    if count != signature.count:
        refuse_count(signature, count)


def wants_map_of(Signature signature, Py_ssize_t index, value):
    """Return whether an argument is an array of which a map must be made for a typed map's parameter."""
    cdef Parameter* parameter = &signature.parameters[index]
    return parameter.typed != NULL and takes_tensor(parameter, value)


def packed(Signature signature, Py_ssize_t index, value):
    """Return the bytes of an argument."""
    cdef Parameter* parameter = &signature.parameters[index]
    cdef bytes block = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack(parameter, value, <unsigned char*>PyBytes_AS_STRING(block))
    return block


def packed_map(Signature signature, Py_ssize_t index, bytes raw, bint is_wide):
    """Return the bytes of an argument that is a tensor map."""
    cdef Parameter* parameter = &signature.parameters[index]
    cdef bytes block = PyBytes_FromStringAndSize(NULL, parameter.size)
    pack_map(parameter, <const char*>raw, <unsigned char*>PyBytes_AS_STRING(block))
    if parameter.typed != NULL:
        require_map_type(parameter, <const char*>raw, is_wide)
    return block
