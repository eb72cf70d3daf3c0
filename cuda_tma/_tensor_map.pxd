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
    MAP_BYTES = 128  # A tensor map has sizeof(CUtensorMap) bytes.
    MAP_ALIGNMENT = 128  # cuda.h declares alignas(128) since CUDA 13, and alignas(64) before it.


cdef class TensorMapDescriptor:
    # The array contains the map at its first aligned address.
    cdef unsigned char _storage[MAP_BYTES + MAP_ALIGNMENT - 8]
    cdef TensorArguments _arguments  # The method replace_address needs these facts.
    cdef int _device_id
    cdef CUcontext _context
    cdef object _tensor  # The tensor is None after replace_address(int).
    cdef object _owner  # The owner keeps the memory of the tensor alive.
    cdef Compilable _options
    cdef object __weakref__

    cdef inline void* map(self) noexcept:
        return <void*>((<uintptr_t>self._storage + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))

    cdef int _require_same_tensor(self, DLTensor* tensor) except -1
    cdef int _put_address(self, uint64_t address, object tensor, object owner) except -1
    cdef tuple held(self)


cdef inline int copy_map(TensorMapDescriptor descriptor, void* target) except -1:
    """Copy the 128 bytes in one critical section, so that no part is from before a concurrent replace_address.

    With a GIL, the function avoids the section, whose pair of reference counts is slow (see layout_of()).
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
    """Return the address of the tensor, with which a map begins (docs/fields.md)."""
    return <uint64_t*>map
