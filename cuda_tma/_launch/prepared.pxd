"""What a prepared launch holds, for nodes of graphs."""

from .._cuda.driver cimport CUfunction, LaunchConfigC
from .._read.stream cimport KnownStream
from .launch_config cimport Configuration
from .signature cimport Parameter, Signature


cdef class Arguments:
    """Arguments, and their block. Nothing of it changes: the driver may read it."""

    cdef tuple values
    cdef tuple maps  # the same, but for each tensor that a map was made of, the descriptor
    cdef bytes block


cdef class Bound:
    """A block, for one stream: its context is the descriptors', and the function is the kernel in it."""

    cdef KnownStream stream
    cdef CUfunction function
    cdef LaunchConfigC native
    cdef bytes block


cdef class PreparedLaunch:
    cdef object kernel, config
    cdef Signature signature
    cdef Configuration configuration
    cdef Arguments arguments
    cdef Arguments _arguments(self)  # whole, whoever sets some meanwhile
    cdef Bound bound  # these arguments, for the stream of the last launch; or None


cdef object map_of(Parameter* parameter, object value, object before)
