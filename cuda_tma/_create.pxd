"""Having the driver write a map, for the other extension modules."""

from ._arguments cimport CompiledOptions, TensorArguments
from ._dlpack cimport DLTensor


cdef int encode(
    void* target, DLTensor* tensor, CompiledOptions values, TensorArguments* arguments, int device_id) except -1
