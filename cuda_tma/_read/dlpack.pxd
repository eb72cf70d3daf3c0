"""DLPack 1.x, and the values that the package reads from it. Source: dlpack.h 1.3."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t

cdef enum:
    INLINE_NDIM = 5  # the highest rank of a tensor map; tensors of more dimensions are stored out of line

cdef enum:  # DLDeviceType
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13

cdef enum:  # DLDataTypeCode
    FIRST_NARROW_CODE = 7  # the fp8, fp6 and fp4 types

cdef struct DLTensor:
    void* data
    int32_t device_type
    int32_t device_id
    int32_t ndim
    uint8_t code
    uint8_t bits
    uint16_t lanes
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept nogil

cdef struct DLManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept nogil
    uint64_t flags
    DLTensor dl_tensor

cdef struct DLPackExchangeAPI:
    uint32_t major
    uint32_t minor
    DLPackExchangeAPI* previous
    void* managed_tensor_allocator
    int (*managed_tensor_from_py_object_no_sync)(void*, DLManagedTensorVersioned**) except? -1
    void* managed_tensor_to_py_object_no_sync
    int (*dltensor_from_py_object_no_sync)(void*, DLTensor*) except? -1
    void* current_work_stream


cdef class ExportedTensor:
    """A tensor's description of itself, with the references that keep its memory alive."""

    cdef DLTensor layout  # a copy; shape and strides point into one of the next four
    cdef DLManagedTensorVersioned* versioned     # owned: released through its deleter
    cdef DLManagedTensor* unversioned            # owned: likewise, from exporters before DLPack 1.0
    cdef int64_t* values  # owned: shape then strides, if no DLPack object holds them
    cdef int64_t inline_values[2 * INLINE_NDIM]  # likewise, for few dimensions

    cdef readonly object source   # the tensor; a descriptor's `tensor`
    cdef uint64_t source_address  # the address of its elements; 0 if it cannot be queried again
    cdef object kept  # the view or Buffer through which it was passed
    cdef object owner  # the owner of the memory, if that is none of these


cdef inline uint64_t address_of(const DLTensor* tensor) noexcept:
    return <uint64_t><uintptr_t>tensor.data + tensor.byte_offset


cdef inline uint32_t dtype_key(DLTensor* tensor) noexcept:
    """Return the dtype as one number, for dtype_name_of()."""
    return tensor.code | <uint32_t>tensor.bits << 8 | <uint32_t>tensor.lanes << 16


cdef inline void put_dtype(DLTensor* tensor, uint32_t key) noexcept:
    tensor.code, tensor.bits, tensor.lanes = <uint8_t>key, <uint8_t>(key >> 8), <uint16_t>(key >> 16)


cdef tuple shape_of(DLTensor* tensor)
cdef tuple strides_of(DLTensor* tensor)
cdef int adopt_exchange(ExportedTensor exported, object tensor, DLPackExchangeAPI* api) except -1
cdef int adopt_capsule(ExportedTensor exported, object capsule) except -1
cdef int adopt_array_interface(ExportedTensor exported, object interface) except -1
cdef int set_values(ExportedTensor exported, tuple shape, tuple strides) except -1
cdef int copy_values(ExportedTensor exported, DLTensor* tensor) except -1
cdef object dlpack_capsule(object tensor)
