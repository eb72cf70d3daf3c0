"""The functions that read a property of one of cuda.core's types."""

cimport cython
from cpython.object cimport PyObject, Py_TYPE

# A Getter has the type of tp_descr_get, with borrowed references.
ctypedef object (*Getter)(PyObject*, PyObject*, PyObject*)


@cython.final
cdef class Property:
    """One property of a type, whose value is False if an older cuda.core lacks the property."""

    cdef object descriptor  # The getter of the descriptor is called. For None, the property is looked up by name.
    cdef Getter get
    cdef str name


cdef Property own_property(type owner, str name)
cdef Property named_property(str name)


cdef inline object read_property(PyObject* property, object instance):
    """Read a Property that the caller borrows.

    A reference would be taken and released at each access (layout_of()).
    """
    if (<Property>property).get == NULL:
        return getattr(instance, (<Property>property).name, False)
    return (<Property>property).get(
        <PyObject*>(<Property>property).descriptor, <PyObject*>instance, <PyObject*>Py_TYPE(instance))
