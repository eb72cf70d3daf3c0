"""The parts of a prepared launch, for nodes of graphs."""

from .._cuda.driver cimport CUfunction, LaunchConfigC
from .._read.stream cimport KnownStream
from .launch_config cimport Configuration
from .signature cimport Parameter, Signature


cdef class Arguments:
    """Arguments, and their block. They never change, because the driver may read them."""

    cdef tuple values
    cdef tuple maps  # the same, with a descriptor in place of each tensor that a map was made of
    cdef bytes block


cdef class Bound:
    """A block for one stream, whose context is the descriptors', and the kernel's function in it."""

    cdef KnownStream stream
    cdef CUfunction function
    cdef LaunchConfigC native
    cdef bytes block


cdef class PreparedLaunch:
    cdef object kernel, config
    cdef Signature signature
    cdef Configuration configuration
    cdef Arguments arguments
    cdef Arguments _arguments(self)  # consistent, even if another thread sets some meanwhile
    cdef Bound bound  # these arguments, for the stream of the last launch; or None


cdef object map_of(Parameter* parameter, object value, object before)
