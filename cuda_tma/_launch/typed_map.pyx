"""The handling of a typed map's parameter: 128 bytes are compared with the type, or a map is made of a tensor."""

cimport cython
from libc.string cimport memcmp, memcpy

from .._cuda.driver cimport CUcontext
from .._make.arguments cimport TensorArguments
from .._make.create cimport describe_here
from .._make.encode cimport encode
from .._read.dlpack cimport DLTensor, dtype_key
from .._read.export cimport Reading, layout_of, look_at_torch, read, source_of
from .._tensor_map cimport MAP_BYTES, TensorMapDescriptor, new_descriptor, replace_address

from ..codec._fields import IM2COL, RANK, fields
from ..codec import encode as encoded
from ..params import Im2colParams, TiledParams
from .._read.dlpack import dtype_name_of
from .._data_type import DLPACK_DTYPES, float_dtype
from ..rules._launches import other_elements, stated

cdef enum:
    INTEGER_CODES = 1 << 0 | 1 << 1  # The codes are kDLInt and kDLUInt.
    UNFIXED_DIM = 2  # The representative tensor for all maps of a type has the extent UNFIXED_DIM.


@cython.final
cdef class TypedMap:
    pass


cdef TypedMap typed_map(object map_type):
    cdef TypedMap typed = TypedMap.__new__(TypedMap)
    mask, value = fixed_bits(map_type)
    typed.map_type = map_type
    typed.dtype_codes = dtype_codes(map_type.data_type)
    typed.options = map_type.options if map_type.mode == "tiled" else None
    for place, word in enumerate((FIRST_FIXED, SECOND_FIXED, THIRD_FIXED)):
        typed.mask[place] = mask >> 64 * word & <object>0xFFFFFFFFFFFFFFFF
        typed.value[place] = value >> 64 * word & <object>0xFFFFFFFFFFFFFFFF
    return typed


def dtype_codes(data_type):
    """Return the DLPack type codes, as bits, of the tensors whose elements have the meaning that the type reads.

    bfloat16 may be integers, because many libraries lack it. Integers in place of other floats would be other numbers.
    """
    dtype = float_dtype(data_type)
    if dtype is None:
        return (1 << 64) - 1
    return 1 << DLPACK_DTYPES[dtype][0] | (INTEGER_CODES if dtype == "bfloat16" else 0)


def fixed_bits(map_type):
    """Return the bits of a map that its type fixes, and their values, as two little-endian numbers of 1024 bits.

    The bits follow from the table of fields, and are all in the three words that a launch compares.
    """
    names, rank = stated(map_type), map_type.rank
    mode = TiledParams if map_type.mode == "tiled" else Im2colParams
    mask = sum(field.mask for field in (IM2COL, RANK, *(f for f in fields(mode, rank) if f.name in names)))
    if mode is Im2colParams:
        names |= dict.fromkeys(("pixel_box_lower_corner", "pixel_box_upper_corner"), (0,) * (rank - 2))
        names["element_strides"] = (1,) * rank
    params = mode(global_address=0, global_dim=(UNFIXED_DIM,) * rank, global_strides=(0,) * (rank - 1), **names)
    words = sum(((1 << 64) - 1) << 64 * word for word in (FIRST_FIXED, SECOND_FIXED, THIRD_FIXED))
    assert mask & ~words == 0
    return mask, int.from_bytes(encoded(params), "little") & mask


cdef int make(TypedMap typed, object tensor, void* target, CUcontext* context, int* device_id) except -1:
    """Let the driver write the map of a tensor into an argument of a launch. The caller holds the tensor until then.

    The map is made in `context`. If it is NULL, the current context and its device are stored there first.
    """
    cdef Reading reading
    cdef TensorArguments arguments
    cdef DLTensor* layout = &reading.room
    owner = None
    if not look_at_torch(tensor, layout):
        owner = read(tensor, &reading)
        layout = layout_of(owner, &reading)
    describe_here(layout, typed.options, context, device_id, &arguments)
    encode(target, typed.options, &arguments, device_id[0])
    return require_elements(typed, layout)


cdef TensorMapDescriptor describe_tensor(TypedMap typed, object tensor, TensorMapDescriptor before):
    """Return the map of a tensor as a descriptor, which keeps the tensor alive.

    If the tensor differs from the tensor of `before` only in the address, the map of `before` is copied with that
    address.
    """
    cdef TensorMapDescriptor new = new_descriptor()
    cdef Reading reading
    owner = read(tensor, &reading)
    new._tensor, new._owner, new._options = source_of(tensor, owner), owner, typed.options
    describe_here(layout_of(owner, &reading), typed.options, &new._context, &new._device_id, &new._arguments)
    if before is not None and _differ_in_address(before, new):
        memcpy(new.map(), before.map(), MAP_BYTES)
        replace_address(new.map(), new._arguments.global_address)
    else:
        encode(new.map(), typed.options, &new._arguments, new._device_id)
    require_elements(typed, layout_of(owner, &reading))
    return new


cdef inline int require_elements(TypedMap typed, DLTensor* tensor) except -1:
    """Refuse a tensor whose elements have the type's size but another meaning, such as bfloat16 for float16."""
    if tensor.code > 63 or typed.dtype_codes >> tensor.code & 1:
        return 0
    raise other_elements(typed.map_type, dtype_name_of(dtype_key(tensor)))


cdef inline bint _differ_in_address(TensorMapDescriptor before, TensorMapDescriptor new) noexcept:
    """Return whether the maps differ only in a legal address. For an illegal address, the encoder explains the error.
    """
    return (before._context == new._context and before._options is new._options
            and new._arguments.global_address % new._arguments.alignment_bytes == 0
            and not memcmp(before._arguments.global_dim, new._arguments.global_dim,
                           sizeof(TensorArguments) - sizeof(before._arguments.global_address)))
