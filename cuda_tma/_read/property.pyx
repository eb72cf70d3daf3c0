"""The lookup of a property's getter in its type.

Seven look-ups by name would take 5 % of the time of a launch.
"""

cimport cython
from cpython.object cimport Py_TYPE


@cython.final
cdef class Property:
    pass


cdef Property named_property(str name):
    """Return the property for any object. An instance of a subclass may override the property."""
    cdef Property new = Property.__new__(Property)
    new.name = name
    return new


cdef Property own_property(type owner, str name):
    """Return the property for direct instances of a type, if no instance can override the property."""
    cdef Property new = named_property(name)
    found = vars(owner).get(name)
    if Py_TYPE(found).tp_descr_get != NULL and Py_TYPE(found).tp_descr_set != NULL:
        new.descriptor, new.get = found, <Getter>Py_TYPE(found).tp_descr_get
    return new
