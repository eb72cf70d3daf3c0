"""The handles of graphs and of their nodes."""

from libc.stdint cimport uintptr_t


cdef uintptr_t handle_of(object owner, str what) except 0
