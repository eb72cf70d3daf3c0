"""The only conversion from a tensor to driver order, in which index 0 is innermost and strides are in bytes.

All values are C values, so that no Python object is made between the tensor and the driver.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from .._read.dlpack cimport DLTensor, address_of, dtype_key, shape_of, strides_of

from ..rules import _refusals
from .._read.dlpack import dtype_name_of
from .._data_type import DLPACK_NAMES, ELEMENTS, data_type_of
from ..enums import TensorMapDataType

# The arrays contain the tables of data_type.py. The indices of _INFERRED are the DLPack code and log2 of the element's
# bytes.
cdef enum:
    CODES = 32
    DATA_TYPES = 32  # A map has five bits for the data type, which have 32 values.
    INTERLEAVES = 3
    ASK = 255  # A dtype with this entry determines no data type, and data_type_of() explains the reason.
cdef int64_t MAX_STRIDE = 1 << 40  # MAX_STRIDE is in elements, and a larger stride is illegal in bytes, too.
cdef unsigned char _INFERRED[CODES][4]
cdef unsigned char _ELEMENT_BITS[DATA_TYPES]
cdef unsigned char _ALIGN_BYTES[DATA_TYPES][INTERLEAVES]  # _ALIGN_BYTES contains the alignment of the address.


def fill_tables(data_types, dtypes):
    """Fill the C arrays.

    Refuse values without a place in the arrays, which would be written past their ends.
    """
    memset(_INFERRED, ASK, sizeof(_INFERRED))
    for code, bits, lanes in dtypes:
        if lanes == 1 and bits <= 64:
            if not (0 <= code < CODES and bits in (8, 16, 32, 64)):
                raise IndexError(f"DLPack dtype {(code, bits, lanes)} has no place in the table of inferred data types")
            _INFERRED[code][bits.bit_length() - 4] = data_type_of(dtypes[code, bits, lanes])
    for data_type in data_types:
        if not 0 <= data_type < DATA_TYPES:
            raise IndexError(f"data type {int(data_type)} has no place in tables of {DATA_TYPES}")
        _ELEMENT_BITS[<int>data_type] = ELEMENTS[data_type].bits
        for interleave in range(INTERLEAVES):
            _ALIGN_BYTES[<int>data_type][<int>interleave] = ELEMENTS[data_type].align_bytes(interleave)


fill_tables(TensorMapDataType, DLPACK_NAMES)


cdef int describe(DLTensor* tensor, int data_type, uint32_t interleave, TensorArguments* out) except -1:
    """Describe the tensor in driver order.

    The data type -1 means that the tensor's dtype determines the data type.
    """
    cdef int rank = tensor.ndim
    cdef int index, dim
    cdef int64_t extent, elements = 1  # `elements` is the product of the extents that the loop has visited.
    cdef uint64_t stride_bytes
    cdef uint64_t element_bytes = tensor.bits * tensor.lanes // 8
    # The span covers the dimensions that the loop has visited, including the gaps.
    cdef uint64_t span_bytes = element_bytes
    if rank < 1 or rank > MAX_RANK:
        raise _refusals.rank(shape_of(tensor))
    out.dtype = dtype_key(tensor)
    out.data_type = resolve_data_type(tensor, data_type)
    out.rank = rank
    out.alignment_bytes = address_alignment_bytes(out.data_type, interleave)
    out.global_address = address_of(tensor)
    # The loop takes a few instructions. A loop that begins at the rank, or a call of memset(), would be slower.
    for index in range(MAX_RANK):
        out.global_dim[index] = out.global_strides[index] = 0
    for index in range(rank):
        dim = driver_index(rank, index)
        extent = tensor.shape[dim]
        stride_bytes = _stride_bytes(tensor, dim, extent, element_bytes, elements, span_bytes)
        if index > 0:
            out.global_strides[index - 1] = stride_bytes
        out.global_dim[index] = extent
        span_bytes = stride_bytes * <uint64_t>extent
        elements *= extent
    if _ELEMENT_BITS[out.data_type] < 8:
        _count_packed_elements(out)
    return 0


cdef inline uint64_t _stride_bytes(
        DLTensor* tensor, int dim, int64_t extent, uint64_t element_bytes, int64_t elements,
        uint64_t span_bytes) except? -1:
    """Return the bytes from one index of a dimension to the next.

    `elements` and `span_bytes` are those of the inner dimensions.

    A dimension of extent 1 gets the stride of a contiguous tensor, rounded up to a legal stride. Any stride addresses
    such a dimension correctly, and torch keeps some strides that the driver refuses.
    """
    cdef int64_t stride = elements if tensor.strides == NULL else tensor.strides[dim]
    cdef bint is_innermost = dim == tensor.ndim - 1
    if extent < 1:
        raise _refusals.empty(shape_of(tensor))
    if extent == 1:
        return span_bytes if is_innermost else (span_bytes + 31) // 32 * 32
    if is_innermost and stride != 1:
        if 0 in shape_of(tensor):  # NumPy gives empty arrays strides of 0.
            raise _refusals.empty(shape_of(tensor))
        raise _refusals.innermost_stride(shape_of(tensor), strides_of(tensor))
    if stride < 0:
        raise _refusals.negative_stride(dim, strides_of(tensor))
    if stride >= MAX_STRIDE:
        raise _refusals.stride_range(dim, strides_of(tensor))
    return <uint64_t>stride * element_bytes


cdef int resolve_data_type(DLTensor* tensor, int requested) except -1:
    """Return the requested data type if its elements fit the tensor's. Otherwise return the data type of the dtype."""
    cdef uint32_t storage_bits = tensor.bits * tensor.lanes
    cdef uint32_t index
    if requested >= 0:
        if storage_bits != (8 if _ELEMENT_BITS[requested] < 8 else _ELEMENT_BITS[requested]):
            raise _refusals.element_size(requested, dtype_name_of(dtype_key(tensor)), storage_bits)
        return requested
    if tensor.lanes == 1 and tensor.code < CODES and storage_bits in (8, 16, 32, 64):
        index = 0 if storage_bits == 8 else 1 if storage_bits == 16 else 2 if storage_bits == 32 else 3
        if _INFERRED[tensor.code][index] != ASK:
            return _INFERRED[tensor.code][index]
    return data_type_of(dtype_name_of(dtype_key(tensor)))


cdef int _count_packed_elements(TensorArguments* tensor) except -1:
    """Count a packed type's elements along the innermost dimension.

    The tensor counts this dimension in bytes.
    """
    cdef uint64_t bits = tensor.global_dim[0] * 8
    if bits % _ELEMENT_BITS[tensor.data_type]:
        raise _refusals.packed_extent(tensor.data_type, tensor.global_dim[0])
    tensor.global_dim[0] = bits // _ELEMENT_BITS[tensor.data_type]
    return 0


cdef uint32_t address_alignment_bytes(uint32_t data_type, uint32_t interleave) noexcept:
    return _ALIGN_BYTES[data_type][interleave]


cdef uint64_t row_bytes(TensorArguments* tensor) noexcept:
    """Return the bytes from the first element of the innermost dimension past its last element.

    A row is a whole number of bytes.
    """
    return tensor.global_dim[0] * _ELEMENT_BITS[tensor.data_type] // 8


cdef int arguments_of(object params, TensorArguments* out) except -1:
    """Set the tensor's values of parameters that are already in driver order."""
    memset(out, 0, sizeof(TensorArguments))
    out.data_type = params.data_type
    out.rank = params.rank
    out.alignment_bytes = address_alignment_bytes(params.data_type, params.interleave)
    out.global_address = params.global_address
    for index, extent in enumerate(params.global_dim):
        out.global_dim[index] = extent
    for index, stride in enumerate(params.global_strides):
        out.global_strides[index] = stride
    return 0
