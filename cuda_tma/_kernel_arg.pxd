"""Packing kernel arguments into the driver's parameter block."""

from ._driver cimport CUfunction

cdef class Signature:
    """A kernel's parameters: where each lies in the parameter block, its size, and its kind where its name tells."""

    cdef CUfunction function
    cdef readonly str name
    cdef readonly tuple kinds  # one for each parameter: "integer", "float", "bool", "pointer" or None
    cdef Py_ssize_t count
    cdef size_t block_bytes
    cdef size_t* offsets
    cdef size_t* sizes
    cdef object reference      # weak: its callback drops this from the cache when the kernel goes
    cdef object configuration  # what the kernel was last launched with: see _launch.pyx

cdef Signature signature_of(object kernel)
cdef int pack(Signature signature, Py_ssize_t index, object value, unsigned char* slot) except -1
