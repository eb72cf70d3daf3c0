"""The one way from (tensor, options) to driver order: index 0 innermost, strides in bytes.

Both parts are C values, so that making a descriptor touches no Python object between the tensor and the driver.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from .._read.dlpack cimport DLTensor, ExportedTensor, address_of, dtype_key, shape_of, strides_of
from .._cuda.driver cimport CUresult, driver

from ..rules import refusals
from .._read.dlpack import dtype_name_of
from ..data_type import DLPACK_NAMES, data_type_of, element_bits
from ..enums import TensorMapDataType
from ..params import TiledParams

# data_type.py's tables as C arrays. _INFERRED is indexed by DLPack code and log2 of the element's bytes.
cdef enum:
    CODES = 32
    DATA_TYPES = 16
    ASK = 255  # no type follows from the dtype: data_type_of() says why
cdef int64_t MAX_STRIDE = 1 << 40  # in elements: in bytes, none that large is legal
cdef unsigned char _INFERRED[CODES][4]
cdef unsigned char _ELEMENT_BITS[DATA_TYPES]
cdef bint _NEEDS_32_BYTES[DATA_TYPES]  # of its address


def fill_tables(data_types, dtypes):
    """Fill the C arrays. What has no place in them is refused: it would be written past their ends."""
    memset(_INFERRED, ASK, sizeof(_INFERRED))
    for code, bits, lanes in dtypes:
        if lanes == 1 and bits <= 64:
            if not (0 <= code < CODES and bits in (8, 16, 32, 64)):
                raise IndexError(f"DLPack dtype {(code, bits, lanes)} has no place in the table of inferred data types")
            _INFERRED[code][bits.bit_length() - 4] = data_type_of(dtypes[code, bits, lanes])
    for data_type in data_types:
        if not 0 <= data_type < DATA_TYPES:
            raise IndexError(f"data type {int(data_type)} has no place in tables of {DATA_TYPES}")
        _ELEMENT_BITS[<int>data_type] = element_bits(data_type)
        _NEEDS_32_BYTES[<int>data_type] = data_type.name.endswith("ALIGN16B")


fill_tables(TensorMapDataType, DLPACK_NAMES)


cdef inline int driver_index(int rank, int dim) noexcept:
    """The driver counts dimensions from the innermost, tensors from the outermost."""
    return rank - 1 - dim


cdef class CompiledOptions:
    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) noexcept:
        return driver.cuTensorMapEncodeTiled(
            target, tensor.data_type, tensor.rank, <void*><uintptr_t>tensor.global_address, tensor.global_dim,
            tensor.global_strides, self.box_dim, self.element_strides, self.interleave, self.swizzle,
            self.l2_promotion, self.oob_fill)

    cdef object params(self, TensorArguments* tensor):
        return TiledParams(
            box_dim=tuple([self.box_dim[index] for index in range(tensor.rank)]), **self.common_params(tensor))

    cdef dict common_params(self, TensorArguments* tensor):
        """The parameters of all modes."""
        rank = tensor.rank
        return {
            "data_type": tensor.data_type,
            "global_address": tensor.global_address,
            "global_dim": tuple([tensor.global_dim[index] for index in range(rank)]),
            "global_strides": tuple([tensor.global_strides[index] for index in range(rank - 1)]),
            "element_strides": tuple([self.element_strides[index] for index in range(rank)]),
            "interleave": self.interleave,
            "swizzle": self.swizzle,
            "l2_promotion": self.l2_promotion,
            "oob_fill": self.oob_fill,
            "allocation_class": SMALL if self.allocation_class < 0 else self.allocation_class,
        }


@cython.auto_pickle(False)  # the values are made again
cdef class Compilable:
    pass


cdef CompiledOptions compile_options(object options):
    from ..options import TensorMapOptions  # whose base class is above

    if not isinstance(options, TensorMapOptions):
        from .im2col import compile_pixels  # whose values are of subclasses of this module's

        return compile_pixels(options)
    cdef CompiledOptions values = CompiledOptions.__new__(CompiledOptions)
    compile_common(values, options, len(options.box_dim))
    put_uint32(values.box_dim, "box_dim", options.box_dim, "1 to 256")
    return values


cdef int compile_common(CompiledOptions values, object options, int rank) except -1:
    """The options of all modes. Those of ANY_RANK have no element strides: all are 1."""
    element_strides = options.element_strides or (1,) * (MAX_RANK if rank == ANY_RANK else rank)
    if len(element_strides) != rank and rank != ANY_RANK:
        raise refusals.option_lengths(options)
    if options.interleave == 0 and rank and element_strides[-1] != 1:
        raise refusals.innermost_element_stride(element_strides)
    values.rank = rank
    put_uint32(values.element_strides, "element_strides", element_strides, "1 to 8")
    values.data_type = -1 if options.data_type is None else options.data_type
    values.allocation_class = -1 if options.allocation_class is None else options.allocation_class
    values.interleave = options.interleave
    values.swizzle = options.swizzle
    values.l2_promotion = options.l2_promotion
    values.oob_fill = options.oob_fill
    return 0


cdef int put_uint32(uint32_t* target, str name, tuple values, str legal) except -1:
    """A value for each dimension, in driver order. More than MAX_RANK fit no tensor that describe() lets through."""
    rank = len(values)
    for dim in range(rank if rank <= MAX_RANK else 0):
        if not 0 <= values[dim] < 2**32:
            raise refusals.option_range(f"{name}[{dim}]", values[dim], "unsigned", legal)
        target[driver_index(rank, dim)] = values[dim]
    return 0


cdef int describe(
        DLTensor* tensor, Compilable options, CompiledOptions values, TensorArguments* out) except -1:
    """The tensor in driver order."""
    cdef int rank = tensor.ndim
    cdef int index, dim
    cdef int64_t elements = 1  # of the dimensions so far
    cdef uint64_t stride_bytes
    cdef uint64_t span_bytes = tensor.bits * tensor.lanes // 8  # of the dimensions so far, with their gaps
    if rank < 1 or rank > MAX_RANK:
        raise refusals.rank(shape_of(tensor))
    if values.rank != rank and values.rank != ANY_RANK:
        raise refusals.option_length(options, shape_of(tensor))
    out.dtype = dtype_key(tensor)
    out.data_type = resolve_data_type(tensor, values.data_type)
    out.rank = rank
    out.alignment_bytes = address_alignment_bytes(out.data_type, values.interleave)
    out.global_address = address_of(tensor)
    for index in range(rank):
        dim = driver_index(rank, index)
        stride_bytes = _stride_bytes(tensor, dim, elements, span_bytes)
        if index > 0:
            out.global_strides[index - 1] = stride_bytes
        out.global_dim[index] = tensor.shape[dim]
        span_bytes = stride_bytes * <uint64_t>tensor.shape[dim]
        elements *= tensor.shape[dim]
    for index in range(rank, MAX_RANK):  # where memset() of the whole would take twice as long
        out.global_dim[index] = out.global_strides[index] = 0
    out.global_strides[rank - 1] = 0
    if _ELEMENT_BITS[out.data_type] < 8:
        _count_packed_elements(out)
    return 0


cdef inline uint64_t _stride_bytes(DLTensor* tensor, int dim, int64_t elements, uint64_t span_bytes) except? -1:
    """From one index of a dimension to the next. The dimensions inside have so many elements and span so many bytes.

    A dimension of extent 1 gets the stride that a contiguous tensor would have there, rounded up to a legal one: any
    stride addresses it correctly, and torch keeps some that the driver refuses.
    """
    cdef int64_t extent = tensor.shape[dim]
    cdef int64_t stride = elements if tensor.strides == NULL else tensor.strides[dim]
    cdef bint is_innermost = dim == tensor.ndim - 1
    if extent < 1:
        raise refusals.empty(shape_of(tensor))
    if extent == 1:
        return span_bytes if is_innermost else (span_bytes + 31) // 32 * 32
    if is_innermost and stride != 1:
        if 0 in shape_of(tensor):  # whose strides NumPy makes 0
            raise refusals.empty(shape_of(tensor))
        raise refusals.innermost_stride(shape_of(tensor), strides_of(tensor))
    if stride < 0:
        raise refusals.negative_stride(dim, strides_of(tensor))
    if stride >= MAX_STRIDE:
        raise refusals.stride_range(dim, strides_of(tensor))
    return <uint64_t>stride * (tensor.bits * tensor.lanes // 8)


cdef int resolve_data_type(DLTensor* tensor, int requested) except -1:
    """The data type: the one asked for, if its elements are the tensor's; else the one that follows from the dtype."""
    cdef uint32_t storage_bits = tensor.bits * tensor.lanes
    cdef uint32_t index
    if requested >= 0:
        if storage_bits != (8 if _ELEMENT_BITS[requested] < 8 else _ELEMENT_BITS[requested]):
            raise refusals.element_size(requested, dtype_name_of(dtype_key(tensor)), storage_bits)
        return requested
    if tensor.lanes == 1 and tensor.code < CODES and storage_bits in (8, 16, 32, 64):
        index = 0 if storage_bits == 8 else 1 if storage_bits == 16 else 2 if storage_bits == 32 else 3
        if _INFERRED[tensor.code][index] != ASK:
            return _INFERRED[tensor.code][index]
    return data_type_of(dtype_name_of(dtype_key(tensor)))


cdef int _count_packed_elements(TensorArguments* tensor) except -1:
    """A packed type counts its own elements along the innermost dimension, which the tensor holds as bytes."""
    cdef uint64_t bits = tensor.global_dim[0] * 8
    if bits % _ELEMENT_BITS[tensor.data_type]:
        raise refusals.packed_extent(tensor.data_type, tensor.global_dim[0])
    tensor.global_dim[0] = bits // _ELEMENT_BITS[tensor.data_type]
    return 0


cdef uint32_t address_alignment_bytes(uint32_t data_type, uint32_t interleave) noexcept:
    """cuTensorMapEncodeTiled, globalAddress: 32 with INTERLEAVE_32B and the types that align to 16 bytes, else 16."""
    return 32 if interleave == 2 or _NEEDS_32_BYTES[data_type] else 16


cdef uint64_t row_bytes(TensorArguments* tensor) noexcept:
    """Of the innermost dimension, from its first element past its last: a tensor's row is whole bytes."""
    return tensor.global_dim[0] * _ELEMENT_BITS[tensor.data_type] // 8


cdef int arguments_of(object params, TensorArguments* out) except -1:
    """The tensor's part of parameters that are in driver order already."""
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


def tiled_params(ExportedTensor tensor, options):
    """The parameters that a tensor and options make, without asking the driver.

    Parameters
    ----------
    tensor : ExportedTensor
        From ``describe_tensor`` or ``export_tensor``.
    options : TensorMapOptions, TensorMapIm2colOptions or TensorMapIm2colWideOptions

    Returns
    -------
    TiledParams, Im2colParams or Im2colWideParams

    Raises
    ------
    TensorMapError
        If the tensor cannot be described: see ``refusals``.
    """
    cdef TensorArguments arguments
    cdef CompiledOptions values = compiled(options)
    describe(&tensor.layout, options, values, &arguments)
    return values.params(&arguments)
