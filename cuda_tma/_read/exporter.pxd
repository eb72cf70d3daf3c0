"""Who exports a tensor: by its type, how it is read."""

from cpython.object cimport PyObject

from .dlpack cimport DLPackExchangeAPI

ctypedef object (*NoArgsFunction)(PyObject*, PyObject*)
ctypedef unsigned char (*TensorFunction)(const void*) noexcept  # a bool of an at::Tensor


cdef enum Source:
    STANDARD  # one of the protocols
    TORCH
    CUPY
    VIEW      # our StridedMemoryView, which holds its export
    BORROWER  # cuda.core's view and Buffer, and an export, which show memory that another object may own


cdef struct Exporter:  # what is known of a tensor type; it stays where it is as long as Python runs
    Source source
    DLPackExchangeAPI* api
    # torch: methods of the type as C functions, NULL where a subclass has replaced them.
    NoArgsFunction is_neg
    NoArgsFunction is_conj
    NoArgsFunction untyped_storage
    TensorFunction native_is_neg  # what is_neg() asks in the end; NULL where it was not found (negative.py)
    size_t tensor_offset          # its argument lies so many bytes behind the beginning of the object


cdef int register_view_type(type view_type) except -1
cdef const Exporter* exporter_of(object tensor) except NULL
cdef bint is_of_known_type(object value) except -1
