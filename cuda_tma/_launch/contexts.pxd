"""The contexts in which the maps of a launch are valid."""

from .._cuda.driver cimport CUcontext
from .._read.stream cimport KnownStream
from .signature cimport Signature

cdef int require_contexts(tuple args, KnownStream stream) except -1
cdef int require_contexts_in(tuple args, CUcontext context) except -1
cdef int require_context_of_tensors(tuple args, Signature signature, CUcontext made, KnownStream stream) except -1
