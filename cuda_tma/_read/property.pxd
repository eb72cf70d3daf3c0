"""Reading a property of one of cuda.core's types."""

cimport cython
from cpython.object cimport Py_TYPE


@cython.final
cdef class Property:
    """One property; the value is False where an older cuda.core has it not."""

    cdef object descriptor  # whose getter is called; None: it is looked up by name
    cdef str name


cdef Property own_property(type owner, str name)
cdef Property named_property(str name)


cdef inline object read_property(Property property, object instance):
    if property.descriptor is None:
        return getattr(instance, property.name, False)
    return Py_TYPE(property.descriptor).tp_descr_get(property.descriptor, instance, type(instance))
