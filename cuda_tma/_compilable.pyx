"""What the options classes inherit: room for their values as the driver takes them."""

cimport cython


@cython.auto_pickle(False)  # the values are made again
cdef class Compilable:
    pass
