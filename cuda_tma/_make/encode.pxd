"""The functions that make 128 bytes or parameters from arguments and options, for the other extension modules."""

from .._compilable cimport Compilable
from .._read.dlpack cimport DLTensor
from .arguments cimport TensorArguments


cdef int describe_for(DLTensor* tensor, Compilable options, TensorArguments* out) except -1
cdef int encode(void* target, Compilable options, TensorArguments* arguments, int device_id) except -1
cdef object params_from(Compilable options, TensorArguments* arguments)
