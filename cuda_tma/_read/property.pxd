"""Reading a property of one of cuda.core's types."""

cimport cython
from cpython.object cimport PyObject, Py_TYPE

ctypedef object (*Getter)(PyObject*, PyObject*, PyObject*)  # tp_descr_get, of references that others hold


@cython.final
cdef class Property:
    """One property; the value is False where an older cuda.core has it not."""

    cdef object descriptor  # whose getter is called; None: it is looked up by name
    cdef Getter get
    cdef str name


cdef Property own_property(type owner, str name)
cdef Property named_property(str name)


cdef inline object read_property(Property property, object instance):
    if property.get == NULL:
        return getattr(instance, property.name, False)
    return property.get(<PyObject*>property.descriptor, <PyObject*>instance, <PyObject*>Py_TYPE(instance))
