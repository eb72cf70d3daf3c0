"""The parameters of a kernel, as a structure in C."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUfunction
from .._read.weak_cache cimport Known

cdef enum Kind:  # The members of Kind are the kinds of value that a parameter may have.
    ANY = 0  # ANY stands for a type that is unknown or has no other kind.
    INTEGER
    FLOAT
    BOOL
    POINTER


cdef struct Parameter:
    PyObject* signature  # The pointer to the owner is borrowed, because the signature owns its parameters.
    Py_ssize_t index
    size_t offset
    size_t size
    Kind kind
    # Each pointer is to a TypedMap or NULL. The pointer is borrowed, because the signature also owns the typed maps.
    PyObject* typed  # The pointer is set if the parameter is a typed map.
    PyObject* pointed  # The pointer is set if the parameter points to typed maps.


cdef class Signature(Known):
    """The parameters of a kernel: the place, the size and the type of each parameter.

    A type is known if the compiler reports it (_compile.compiled), or if the kernel's name contains it.
    """

    cdef CUfunction function
    cdef readonly str name  # Errors contain the kernel's name.
    # The driver and PTX use the lowered name. The lowered name is None if the driver does not return the name.
    cdef readonly str lowered_name
    cdef Py_ssize_t count
    cdef size_t block_bytes
    # Typed maps are aligned if the block begins `lead_bytes` bytes after an aligned address. On sm_90, the parameters
    # begin at 0x210 in constant memory, so the first aligned map has the offset 112 from the start of the parameters
    # (observed: driver 580).
    cdef size_t lead_bytes
    cdef object reach  # The function returns an array's address without a driver (described()); else it is None.
    cdef Parameter* parameters
    # `types` has the type of each parameter, as in described_types. None means that the types are unknown.
    cdef readonly tuple types
    cdef list typed_maps
    cdef tuple parameter_names  # The tuple of names is empty if the names are unknown.
    # A kernel of cuda_tma.compile() requests `dynamic_shared_bytes`. The value is 0 for other kernels.
    cdef readonly size_t dynamic_shared_bytes
    # `directives` is a rules._configurations.Directives with the restrictions in the kernel's PTX.
    cdef readonly object directives
    cdef dict shared_limits  # `shared_limits` maps a device to the present limit of dynamic shared memory.
    cdef object configuration  # `configuration` is the launch_config.Configuration of the last launch.
    cdef uint64_t context_id  # `context_id` is the context of the first launch, or 0 before that launch.
    cdef CUfunction function_in_context

cdef Signature signature_of(object kernel)
cdef str where(Parameter* parameter)
