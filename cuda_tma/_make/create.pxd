"""Describing a tensor for a map of this context, for the other extension modules."""

from .arguments cimport TensorArguments
from .._compilable cimport Compilable
from .._cuda.driver cimport CUcontext


cdef object describe_here(
    object tensor, Compilable options, CUcontext* context, int* device_id, TensorArguments* out)
