"""A kernel's parameters."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUfunction
from .._read.weak_cache cimport Known

cdef enum Kind:  # what a parameter takes
    ANY = 0  # the type is not known, or any other
    INTEGER
    FLOAT
    BOOL
    POINTER


cdef struct Parameter:
    PyObject* signature  # whose it is; borrowed: the signature owns its parameters
    Py_ssize_t index
    size_t offset
    size_t size
    Kind kind
    # A TypedMap each, or NULL; borrowed: the signature owns them, too.
    PyObject* typed    # where the parameter is a typed map
    PyObject* pointed  # where it points to typed maps


cdef class Signature(Known):
    """A kernel's parameters: the place of each in the parameter block, its size, and its type if the compiler reports
    it (_compile.compiled) or the name has it."""

    cdef CUfunction function
    cdef readonly str name  # as errors say it
    cdef readonly str lowered_name  # as the driver and PTX have it; None if the driver does not tell
    cdef Py_ssize_t count
    cdef size_t block_bytes
    # How far behind an aligned address the block begins, so that typed maps lie at aligned ones. Offsets count from
    # where parameters begin in constant memory, 0x210 on sm_90: there the first map's is 112 (observed: driver 580).
    cdef size_t lead_bytes
    cdef object reach  # from an array to its address, where no driver is asked (described()); else None
    cdef Parameter* parameters
    cdef readonly tuple types  # of each parameter, as described_types has them; None: not known
    cdef list typed_maps
    cdef tuple parameter_names  # where they are known
    cdef readonly size_t dynamic_shared_bytes  # that the kernel takes, if it was compiled here and says so; else 0
    cdef readonly object directives  # a rules.configurations.Directives: what its PTX asks of launches
    cdef dict shared_limits  # device: the dynamic shared memory that it now allows
    cdef object configuration  # what the kernel was last launched with: a _launch_config.Configuration
    cdef uint64_t context_id   # the first context that it was launched in; 0 before that
    cdef CUfunction function_in_context

cdef Signature signature_of(object kernel)
cdef str where(Parameter* parameter)
