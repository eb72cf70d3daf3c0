"""The base of the options classes: space for their values in the driver's types."""

cimport cython


@cython.auto_pickle(False)  # unpickling compiles the values again
cdef class Compilable:
    pass
