"""The lookup of a tensor's exporter, which reads the facts about each type once."""

import sys

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uintptr_t

from .._cuda.free_threading cimport FREE_THREADED
from .dlpack cimport DLPackExchangeAPI, ExportedTensor

from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as CoreView

from .negative import answers_for_methods, find_is_neg

cdef extern from "Python.h":
    bint PyCFunction_Check(object)
    void* PyCFunction_GetFunction(object) except NULL
    int PyCFunction_GetFlags(object) except -1
    int METH_NOARGS


cdef class ExporterType:
    """A tensor type, which is kept alive so that no other type can get its address."""

    cdef object tensor_type
    cdef Exporter exporter


cdef dict _types = {}  # _types maps a type to its ExporterType, and never drops an entry.
# The variable is used only with a GIL, because another thread may replace it during a read.
cdef ExporterType _last = ExporterType()
cdef tuple _borrowers = (CoreView, Buffer, ExportedTensor)
cdef tuple _views = ()


cdef int register_view_type(type view_type) except -1:
    global _views
    _views = (view_type,)
    return 0


cdef const Exporter* exporter_of(object tensor) except NULL:
    """Return a pointer to an exporter.

    A reference would be released at once, which is slow on Python 3.12 (layout_of()).
    """
    global _last
    if FREE_THREADED:
        return &_find_type(tensor).exporter
    if _last.tensor_type is not type(tensor):
        _last = _find_type(tensor)
    return &_last.exporter


cdef ExporterType _find_type(object tensor):
    known = _types.get(type(tensor))
    if known is None:
        # The first entry is not replaced, because pointers to it exist.
        known = _types.setdefault(type(tensor), _new_type(tensor))
    return known


cdef bint is_of_known_type(object value) except -1:
    """Return whether a value is a view or a library's tensor whose type was read before."""
    if not FREE_THREADED and _last.tensor_type is type(value):
        return _is_of_library(&_last.exporter)
    known = _types.get(type(value))
    return known is not None and _is_of_library(&(<ExporterType>known).exporter)


cdef inline bint _is_of_library(const Exporter* exporter) noexcept:
    return exporter.source == TORCH or exporter.source == CUPY or exporter.source == VIEW


cdef ExporterType _new_type(object tensor):
    cdef ExporterType new = ExporterType()
    new.tensor_type = type(tensor)
    new.exporter.source = _source_of(new.tensor_type)
    new.exporter.api = _exchange_api(new.tensor_type)
    if new.exporter.source == TORCH:
        new.exporter.is_neg = _no_args_function(tensor.is_neg)
        new.exporter.is_conj = _no_args_function(tensor.is_conj)
        new.exporter.untyped_storage = _no_args_function(tensor.untyped_storage)
        torch = sys.modules["torch"]
        found = find_is_neg(torch) if new.exporter.is_neg != NULL else None
        if found is not None and not answers_for_methods(torch, new.tensor_type):
            new.exporter.native_is_neg, new.exporter.tensor_offset = <TensorFunction><uintptr_t>found[0], found[1]
    return new


cdef Source _source_of(tensor_type):
    if issubclass(tensor_type, _views):
        return VIEW
    if issubclass(tensor_type, _borrowers):
        return BORROWER
    for source, module, name in ((TORCH, "torch", "Tensor"), (CUPY, "cupy", "ndarray")):
        framework = sys.modules.get(module)
        # A module that is being imported, or a substitute for it, may lack the name.
        base = getattr(framework, name, None)
        if isinstance(base, type) and issubclass(tensor_type, base):
            return source
    return STANDARD


cdef DLPackExchangeAPI* _exchange_api(object tensor_type) except? NULL:
    capsule = getattr(tensor_type, "__dlpack_c_exchange_api__", None)
    cdef DLPackExchangeAPI* api = NULL
    if capsule is not None and PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
        api = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
    while api != NULL and api.major != 1:
        api = api.previous
    return api


cdef NoArgsFunction _no_args_function(object method) except? NULL:
    """Return the C function of a bound method.

    A call of it needs no look-up and no bound object.
    """
    if PyCFunction_Check(method) and PyCFunction_GetFlags(method) == METH_NOARGS:
        return <NoArgsFunction>PyCFunction_GetFunction(method)
    return NULL
