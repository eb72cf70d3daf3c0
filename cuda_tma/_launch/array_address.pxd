"""The address of an array argument."""

from libc.stdint cimport uint64_t

cdef uint64_t address_of_array(object array) except? 0
cdef uint64_t reached(object reach, object array) except? 0
