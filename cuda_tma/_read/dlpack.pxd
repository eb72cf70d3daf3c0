"""The structures of DLPack 1.x, and the values that the package reads from them (dlpack.h 1.3)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t

cdef enum:
    # A tensor map has at most five dimensions. The values of a tensor with more dimensions are in separate memory.
    INLINE_NDIM = 5

cdef enum:  # The names that begin with kDL are values of DLDeviceType.
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13

cdef enum:  # The constants of the enum are values of DLDataTypeCode.
    FIRST_NARROW_CODE = 7  # The codes of fp8, fp6 and fp4 types are 7 or higher.

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
    """The description of a tensor from the tensor itself, with references that keep its memory alive."""

    # The layout is a copy. The shape and strides of the layout point into one of the next four members.
    cdef DLTensor layout
    cdef DLManagedTensorVersioned* versioned  # The object owns the export `versioned`, and releases it by its deleter.
    # The object owns the export `unversioned` of an exporter before DLPack 1.0, and releases it by its deleter.
    cdef DLManagedTensor* unversioned
    # The object owns `values`, which contains the shape and then the strides if no DLPack export has them.
    cdef int64_t* values
    # The array contains the shape and the strides of a tensor with few dimensions.
    cdef int64_t inline_values[2 * INLINE_NDIM]

    cdef readonly object source  # The source is the tensor, which is the `tensor` of a descriptor.
    # `source_address` is the address of the source's elements, or 0 if it cannot be queried again.
    cdef uint64_t source_address
    cdef object kept  # `kept` is the view or Buffer through which the caller passed the source.
    cdef object owner  # `owner` is the owner of the memory, if none of the preceding objects owns it.


cdef inline uint64_t address_of(const DLTensor* tensor) noexcept:
    return <uint64_t><uintptr_t>tensor.data + tensor.byte_offset


cdef inline uint32_t dtype_key(DLTensor* tensor) noexcept:
    """Return the dtype as one number for dtype_name_of()."""
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
