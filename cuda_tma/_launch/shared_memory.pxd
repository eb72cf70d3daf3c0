"""The limit on a kernel's dynamic shared memory."""

from libc.stdint cimport uint32_t

from .._cuda.driver cimport CUcontext
from .signature cimport Signature

cdef int allow_shared_memory(Signature signature, uint32_t dynamic_bytes, CUcontext context) except -1
