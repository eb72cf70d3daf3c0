"""Who exports a tensor: by its type, how it is read."""

from cpython.object cimport PyObject

from .dlpack cimport DLPackExchangeAPI

ctypedef object (*NoArgsFunction)(PyObject*, PyObject*)


cdef enum Source:
    STANDARD  # one of the protocols
    TORCH
    CUPY
    VIEW      # our StridedMemoryView, which holds its export
    BORROWER  # cuda.core's view and Buffer, and an export, which show memory that another object may own


cdef class Exporter:
    """What is known of a tensor type."""

    cdef object tensor_type
    cdef Source source
    cdef DLPackExchangeAPI* api
    # torch: methods of the type as C functions, NULL where a subclass has replaced them.
    cdef NoArgsFunction is_neg, is_conj, untyped_storage


cdef int register_view_type(type view_type) except -1
cdef Exporter exporter_of(object tensor)
cdef bint is_of_known_type(object value) except -1
