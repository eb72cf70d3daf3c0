"""The limit on the dynamic shared memory of a kernel."""

from libc.stdint cimport uint32_t

from .._cuda.driver cimport CUcontext
from .._read.stream cimport KnownStream
from .launch_config cimport Configuration
from .signature cimport Signature

cdef int allow_shared_memory(Configuration configuration, Signature signature, KnownStream stream) except -1
cdef int allow_shared_memory_in(CUcontext context, uint32_t dynamic_bytes, Signature signature) except -1
