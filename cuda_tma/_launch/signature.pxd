"""A kernel's parameters."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUfunction
from .._read.weak_cache cimport Known

cdef enum Kind:  # the kind of value of a parameter
    ANY = 0  # an unknown type, or any other
    INTEGER
    FLOAT
    BOOL
    POINTER


cdef struct Parameter:
    PyObject* signature  # its owner; borrowed: the signature owns its parameters
    Py_ssize_t index
    size_t offset
    size_t size
    Kind kind
    # A TypedMap each, or NULL; borrowed: the signature also owns them.
    PyObject* typed  # set if the parameter is a typed map
    PyObject* pointed  # set if it points to typed maps


cdef class Signature(Known):
    """A kernel's parameters: place, size, and type of each.

    The type is known if the compiler reports it (_compile.compiled) or the name contains it.
    """

    cdef CUfunction function
    cdef readonly str name  # for errors
    cdef readonly str lowered_name  # the name in the driver and in PTX; None if the driver does not return it
    cdef Py_ssize_t count
    cdef size_t block_bytes
    # The distance of the block from an aligned address at which typed maps are aligned. Offsets count from the
    # start of the parameters in constant memory, 0x210 on sm_90: there the first map's is 112 (observed: driver 580).
    cdef size_t lead_bytes
    cdef object reach  # from an array to its address, without a driver (described()); else None
    cdef Parameter* parameters
    cdef readonly tuple types  # of each parameter, as in described_types; None: unknown
    cdef list typed_maps
    cdef tuple parameter_names  # if they are known
    cdef readonly size_t dynamic_shared_bytes  # the kernel's request, if it was compiled here; else 0
    cdef readonly object directives  # a rules._configurations.Directives: the restrictions in its PTX
    cdef dict shared_limits  # device: its present limit of dynamic shared memory
    cdef object configuration  # of the last launch: a launch_config.Configuration
    cdef uint64_t context_id  # the first context of a launch; 0 before that
    cdef CUfunction function_in_context

cdef Signature signature_of(object kernel)
cdef str where(Parameter* parameter)
