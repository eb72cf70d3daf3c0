"""The base of the options classes, with space for their values in the driver's types."""

cimport cython


@cython.auto_pickle(False)  # Unpickling compiles the values of the options again.
cdef class Compilable:
    pass
