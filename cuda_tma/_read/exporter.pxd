"""The exporter of a tensor, which is the method by which the package reads tensors of one type."""

from cpython.object cimport PyObject

from .dlpack cimport DLPackExchangeAPI

ctypedef object (*NoArgsFunction)(PyObject*, PyObject*)
ctypedef unsigned char (*TensorFunction)(const void*) noexcept  # The function returns a bool for an at::Tensor.


cdef enum Source:
    STANDARD  # A tensor of the kind STANDARD supports one of the protocols.
    TORCH
    CUPY
    VIEW  # A VIEW is the package's StridedMemoryView, which holds its export.
    BORROWER  # A BORROWER is cuda.core's view or Buffer, or an export, and shows the memory of another object.


# A struct Exporter contains the facts about a tensor type. The address of an Exporter is constant while Python runs.
cdef struct Exporter:
    Source source
    DLPackExchangeAPI* api
    # The methods of torch's type as C functions are NULL if a subclass has replaced them.
    NoArgsFunction is_neg
    NoArgsFunction is_conj
    NoArgsFunction untyped_storage
    # The method is_neg() calls native_is_neg, which is NULL if the search did not find it (negative.py).
    TensorFunction native_is_neg
    size_t tensor_offset  # tensor_offset is the offset of the at::Tensor in the object.


cdef int register_view_type(type view_type) except -1
cdef const Exporter* exporter_of(object tensor) except NULL
cdef bint is_of_known_type(object value) except -1
