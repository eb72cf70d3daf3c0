"""Who exports a tensor: what is known of its type, looked up once for each."""

import sys

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid

from .dlpack cimport DLPackExchangeAPI, ExportedTensor

from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as CoreView

cdef extern from "Python.h":
    bint PyCFunction_Check(object)
    void* PyCFunction_GetFunction(object) except NULL
    int PyCFunction_GetFlags(object) except -1
    int METH_NOARGS


cdef class Exporter:
    pass


cdef dict _exporters = {}  # type: Exporter. Types are kept alive, so that an id cannot be reused.
cdef Exporter _last = Exporter()
cdef tuple _borrowers = (CoreView, Buffer, ExportedTensor)
cdef tuple _views = ()


cdef int register_view_type(type view_type) except -1:
    global _views
    _views = (view_type,)
    return 0


cdef Exporter exporter_of(object tensor):
    global _last
    if _last.tensor_type is not type(tensor):
        _last = _find_exporter(tensor)
    return _last


cdef Exporter _find_exporter(object tensor):
    exporter = _exporters.get(type(tensor))
    if exporter is None:
        exporter = _exporters[type(tensor)] = _new_exporter(tensor)
    return exporter


cdef bint is_of_known_type(object value) except -1:
    """Whether it is a tensor of a library or a view, of whose type one was read before."""
    exporter = _last if _last.tensor_type is type(value) else _exporters.get(type(value))
    return exporter is not None and (<Exporter>exporter).source in (TORCH, CUPY, VIEW)


cdef Exporter _new_exporter(object tensor):
    cdef Exporter exporter = Exporter()
    exporter.tensor_type = type(tensor)
    exporter.source = _source_of(exporter.tensor_type)
    exporter.api = _exchange_api(exporter.tensor_type)
    if exporter.source == TORCH:
        exporter.is_neg = _no_args_function(tensor.is_neg)
        exporter.is_conj = _no_args_function(tensor.is_conj)
        exporter.untyped_storage = _no_args_function(tensor.untyped_storage)
    return exporter


cdef Source _source_of(tensor_type):
    if issubclass(tensor_type, _views):
        return VIEW
    if issubclass(tensor_type, _borrowers):
        return BORROWER
    for source, module, name in ((TORCH, "torch", "Tensor"), (CUPY, "cupy", "ndarray")):
        framework = sys.modules.get(module)
        base = getattr(framework, name, None)  # a module that is being imported, or a stand-in, may have none
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
    """The C function behind a bound method, for a call without the lookup and the bound object."""
    if PyCFunction_Check(method) and PyCFunction_GetFlags(method) == METH_NOARGS:
        return <NoArgsFunction>PyCFunction_GetFunction(method)
    return NULL
