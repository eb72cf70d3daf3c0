"""Packing kernel arguments into the driver's parameter block."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ._cuda.driver cimport CUcontext, CUfunction
from ._read.weak_cache cimport Known

cdef enum Kind:  # what a parameter takes
    ANY = 0  # the kernel's name does not tell
    INTEGER
    FLOAT
    BOOL
    POINTER


cdef struct Parameter:
    PyObject* signature  # whose it is; borrowed: the signature owns its parameters
    Py_ssize_t index
    size_t offset
    size_t size
    Kind kind


cdef class Signature(Known):
    """A kernel's parameters: where each lies in the parameter block, its size, and its kind where its name tells."""

    cdef CUfunction function
    cdef readonly str name
    cdef Py_ssize_t count
    cdef size_t block_bytes
    cdef Parameter* parameters
    cdef object configuration  # what the kernel was last launched with: a _launch_config.Configuration
    cdef uint64_t context_id   # the first context that it was launched in; 0 before that
    cdef CUfunction function_in_context

cdef Signature signature_of(object kernel)
cdef int pack(Parameter* parameter, object value, unsigned char* slot) except -1
cdef int pack_all(Signature signature, tuple args, CUcontext context, unsigned char* block) except -1
