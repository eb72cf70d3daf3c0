"""The exporter of a tensor: by its type, the method of reading it."""

from cpython.object cimport PyObject

from .dlpack cimport DLPackExchangeAPI

ctypedef object (*NoArgsFunction)(PyObject*, PyObject*)
ctypedef unsigned char (*TensorFunction)(const void*) noexcept  # returns a bool of an at::Tensor


cdef enum Source:
    STANDARD  # one of the protocols
    TORCH
    CUPY
    VIEW      # our StridedMemoryView, which holds its export
    BORROWER  # cuda.core's view and Buffer, and an export, which show memory of other objects


cdef struct Exporter:  # the facts about a tensor type; it stays at its address while Python runs
    Source source
    DLPackExchangeAPI* api
    # torch: methods of the type as C functions, NULL if a subclass has replaced them.
    NoArgsFunction is_neg
    NoArgsFunction is_conj
    NoArgsFunction untyped_storage
    TensorFunction native_is_neg  # the function that is_neg() calls; NULL if it was not found (negative.py)
    size_t tensor_offset  # the offset of its argument in the object


cdef int register_view_type(type view_type) except -1
cdef const Exporter* exporter_of(object tensor) except NULL
cdef bint is_of_known_type(object value) except -1
