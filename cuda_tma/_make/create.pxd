"""The functions that describe a tensor for a map of a context, for the other extension modules."""

from .arguments cimport TensorArguments
from .._compilable cimport Compilable
from .._cuda.driver cimport CUcontext
from .._read.dlpack cimport DLTensor


cdef int describe_here(
    DLTensor* tensor, Compilable options, CUcontext* context, int* device_id, TensorArguments* out) except -1
