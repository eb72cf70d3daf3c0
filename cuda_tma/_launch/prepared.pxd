"""The parts of a prepared launch that nodes of graphs use."""

from .._cuda.driver cimport CUfunction, LaunchConfigC
from .._read.stream cimport KnownStream
from .launch_config cimport Configuration
from .signature cimport Parameter, Signature


cdef class Arguments:
    """The arguments of a launch, and their block. The arguments never change, because the driver may read them."""

    cdef tuple values
    # `maps` contains the arguments, with a descriptor in place of each tensor from which a map was made.
    cdef tuple maps
    cdef bytes block


cdef class Bound:
    """A block of arguments for one stream in the descriptors' context, and the kernel's function in the context."""

    cdef KnownStream stream
    cdef CUfunction function
    cdef LaunchConfigC native
    cdef bytes block


cdef class PreparedLaunch:
    cdef object kernel, config
    cdef Signature signature
    cdef Configuration configuration
    cdef Arguments arguments
    cdef Arguments _arguments(self)  # The arguments are consistent, even if another thread sets some of them meanwhile.
    cdef Bound bound  # `bound` is the block for the stream of the last launch, or None.


cdef object map_of(Parameter* parameter, object value, object before)
