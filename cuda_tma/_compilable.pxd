"""What the options classes inherit, for the extension modules that compile them."""


cdef class Compilable:
    """Room for the options' C values, which _make.encode puts there: this module knows nobody."""

    cdef object values
