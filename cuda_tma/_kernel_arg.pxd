"""Packing kernel arguments into the driver's parameter block."""

from ._driver cimport CUfunction

cdef enum Kind:  # what a parameter takes
    ANY = 0  # the kernel's name does not tell
    INTEGER
    FLOAT
    BOOL
    POINTER


cdef struct Parameter:
    size_t offset
    size_t size
    Kind kind


cdef class Signature:
    """A kernel's parameters: where each lies in the parameter block, its size, and its kind where its name tells."""

    cdef CUfunction function
    cdef readonly str name
    cdef Py_ssize_t count
    cdef size_t block_bytes
    cdef Parameter* parameters
    cdef object configuration  # what the kernel was last launched with: see _launch.pyx

cdef Signature signature_of(object kernel)
cdef int pack(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1
