"""Launch configurations in the driver's form."""

cimport cython
from libc.stdint cimport uint64_t

from .._cuda.driver cimport LaunchAttribute, LaunchConfigC
from .signature cimport Signature

cdef enum:  # GRID and the constants after it are indices into Configuration.fields.
    GRID
    BLOCK
    CLUSTER
    SHMEM_SIZE
    IS_COOPERATIVE
    PROGRAMMATIC
    FIELD_COUNT

cdef enum:
    MAX_ATTRIBUTES = 3
    MOST_SHOWN_BYTES = 128


@cython.final
cdef class Configuration:
    """The fields of a LaunchConfig as they were read, and the driver's structure for them."""

    cdef tuple fields
    cdef unsigned char shown[MOST_SHOWN_BYTES]  # The array is a copy of the LaunchConfig's memory.
    cdef bint is_shown
    cdef LaunchConfigC native
    cdef LaunchAttribute attributes[MAX_ATTRIBUTES]
    cdef uint64_t allowed_in  # The id is of the last context that allowed the shared memory, or 0.


cdef Configuration configuration_of(object config, Signature signature)
