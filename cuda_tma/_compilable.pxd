"""The base of the options classes, for the extension modules that compile them."""


cdef class Compilable:
    """An object with space for the C values of options.

    The module _make.encode writes the values. This module imports nothing.
    """

    cdef object values
