"""The descriptor, for the other extension modules."""

cimport cython
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy

from ._compilable cimport Compilable
from ._make.arguments cimport TensorArguments
from ._read.dlpack cimport DLTensor
from ._cuda.driver cimport CUcontext
from ._cuda.free_threading cimport FREE_THREADED

cdef enum:
    MAP_BYTES = 128       # sizeof(CUtensorMap)
    MAP_ALIGNMENT = 128   # cuda.h since CUDA 13: alignas(128); earlier 64


cdef class TensorMapDescriptor:
    cdef unsigned char _storage[MAP_BYTES + MAP_ALIGNMENT - 8]   # holds the map at its first aligned address
    cdef TensorArguments _arguments  # facts of the tensor, for replace_address
    cdef int _device_id
    cdef CUcontext _context
    cdef object _tensor              # None after replace_address(int)
    cdef object _owner  # keeps the tensor's memory alive: see read()
    cdef Compilable _options
    cdef object __weakref__

    cdef inline void* map(self) noexcept:
        return <void*>((<uintptr_t>self._storage + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))

    cdef int _require_same_tensor(self, DLTensor* tensor) except -1
    cdef int _put_address(self, uint64_t address, object tensor, object owner) except -1
    cdef tuple held(self)


cdef inline int copy_map(TensorMapDescriptor descriptor, void* target) except -1:
    """Copy the 128 bytes as of one moment: see replace_address.

    Entering a critical section takes and releases a reference at once, even with a GIL: see layout_of().
    """
    if FREE_THREADED:
        with cython.critical_section(descriptor):
            memcpy(target, descriptor.map(), MAP_BYTES)
    else:
        memcpy(target, descriptor.map(), MAP_BYTES)
    return 0


cdef TensorMapDescriptor new_descriptor()
cdef bint begin_making(type kind) noexcept
cdef int end_making(bint was_collecting) noexcept
cdef int require_maker(type kind, str makers) except -1
cdef int require_context(CUcontext own) except -1
cdef int replace_address(void* map, uint64_t address) except -1
cdef inline uint64_t* address_field(void* map) noexcept:
    """Return the tensor's address in a map, which begins with it (docs/fields.md)."""
    return <uint64_t*>map
