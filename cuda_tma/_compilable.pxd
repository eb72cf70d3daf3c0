"""The base of the options classes, for the extension modules that compile them."""


cdef class Compilable:
    """Space for the C values of options, which _make.encode fills; this module imports nothing."""

    cdef object values
