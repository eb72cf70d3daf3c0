"""From a tensor and options to the 128 bytes, for the other extension modules."""

from .arguments cimport Compilable, CompiledOptions, TensorArguments
from .._cuda.driver cimport CUcontext


cdef object describe_here(
    object tensor, Compilable options, CompiledOptions values, CUcontext* context, int* device_id,
    TensorArguments* out)
cdef int encode(void* target, CompiledOptions values, TensorArguments* arguments, int device_id) except -1
