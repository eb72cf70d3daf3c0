"""Reading a property of one of cuda.core's extension types by its own getter: without a look-up by name."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef object (*getter)(PyObject*, void*)
    ctypedef struct PyGetSetDef:
        getter get
        void* closure
    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef* d_getset


cdef struct Property:
    getter get
    void* closure  # what the getter is given beside the object


cdef inline object read(Property* property, object instance):
    return property.get(<PyObject*>instance, property.closure)


cdef inline Property own_property(object owner, str name):
    """The property of a type, for its very instances. An older cuda.core may lack it; it is then False."""
    cdef PyGetSetDef* definition
    descriptor = vars(owner).get(name)
    if type(descriptor).__name__ != "getset_descriptor":
        return named_property(name)
    definition = (<PyGetSetDescrObject*>descriptor).d_getset
    return Property(definition.get, definition.closure)


cdef inline Property named_property(str name):
    """The property, looked up by a name that stays alive: for instances of subclasses, which may have their own."""
    return Property(_get_by_name, <void*>name)


cdef inline object _get_by_name(PyObject* instance, void* name):
    return getattr(<object>instance, <object>name, False)
