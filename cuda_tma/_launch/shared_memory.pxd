"""The limit on a kernel's dynamic shared memory."""

from .._read.stream cimport KnownStream
from .launch_config cimport Configuration
from .signature cimport Signature

cdef int allow_shared_memory(Configuration configuration, Signature signature, KnownStream stream) except -1
