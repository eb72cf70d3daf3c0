"""Errors for input that the driver would misread, or would refuse with only an error code.

Each function builds one error in the user's terms, and is not on the hot path. Shapes and strides are in tensor order,
and strides are in elements.
"""

from __future__ import annotations

from typing import Any

from .._cuda_errors import explain_error
from .._data_type import DLPACK_DTYPES, element_bits, is_packed
from .._errors import TensorMapError
from .._given import shown
from ..enums import TensorMapAllocationClass, TensorMapDataType


def no_tensor(value: object) -> TensorMapError:
    """Refuse an object that supports no protocol for tensors. A class has the protocols only for its instances."""
    name = f"a {type(value).__module__}.{type(value).__qualname__}"
    why = f"{name} is not a tensor: it has neither __dlpack__ nor __cuda_array_interface__"
    why = f"{shown(value)} is not a tensor" if isinstance(value, type) else why
    return TensorMapError(f"{why}. Pass a torch, CuPy, JAX or numba-cuda array, a cuda.core Buffer or a view of one")


def lazy_view(bit: str, resolve: str) -> TensorMapError:
    """Refuse a lazy view, because torch exports the view without a mark."""
    return TensorMapError(
        f"the tensor is a lazy view with its {bit} bit set: its memory contains other values than it shows. "
        f"Pass tensor.{resolve}()"
    )


def not_exported(tensor: object) -> TensorMapError:
    """Refuse an exporter that fails without an exception."""
    return TensorMapError(f"{type(tensor).__name__} refused to export itself through DLPack, with no reason given")


def no_capsule(given: object) -> TensorMapError:
    """Refuse a result that is not an unused capsule (DLPack, Python specification)."""
    return TensorMapError(f"__dlpack__ returned a {type(given).__name__}, not an unused DLPack capsule")


def dlpack_version(major: int) -> TensorMapError:
    """Refuse another major version, which has another layout (dlpack.h, DLPackVersion)."""
    return TensorMapError(f"the tensor exports DLPack {major}; this reads DLPack 1")


def copied() -> TensorMapError:
    """Refuse an export that is a copy (DLPACK_FLAG_BITMASK_IS_COPIED)."""
    return TensorMapError(
        "the tensor exports a copy of itself, and a map of the copy would not show the tensor; pass one whose memory "
        "can be exported without a copy"
    )


def dtype(value: object) -> TensorMapError:
    """Refuse elements for which DLPack has no code."""
    return TensorMapError(f"unsupported dtype {value!r}; choose one of {', '.join(DLPACK_DTYPES)}")


def malformed(ndim: int, has_shape: bool, max_ndim: int) -> TensorMapError:
    """Refuse an impossible shape (dlpack.h, DLTensor)."""
    without = "" if has_shape else " without a shape"
    return TensorMapError(
        f"the tensor exports {ndim} dimensions{without}; DLPack has the extent of each, and 0 to {max_ndim} are "
        "supported. The fault is in its library: pass the tensor through another"
    )


def shape_and_strides(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> TensorMapError:
    """Refuse a shape and strides of different lengths, or of too many dimensions."""
    return TensorMapError(f"shape {shape} and strides {strides} do not describe one tensor")


def beyond_64_bits(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> TensorMapError:
    """Refuse numbers beyond int64_t, the type of shape and strides (dlpack.h, DLTensor)."""
    shown = f"shape {shape}, {'C-contiguous' if strides is None else f'strides {strides}'}"
    return TensorMapError(f"{shown}, has an extent or a stride beyond 64 bits: the fault is in its library")


def buffer_strides(strides: tuple[int, ...]) -> TensorMapError:
    """Refuse a view whose strides reach elements before the start of its Buffer."""
    return TensorMapError(f"view() of strides {strides}: a Buffer begins at the first element; pass a copy")


def byte_order(dtype: str) -> TensorMapError:
    """Refuse another byte order, because TMA reads little-endian elements."""
    return TensorMapError(f"the view's dtype {dtype} is not in native byte order, which TMA needs")


def not_strided(tensor: Any, error: Exception) -> TensorMapError:
    """Refuse a torch tensor whose layout is not a shape with strides."""
    remedies = {
        "each of tensor.unbind()": tensor.is_nested,
        "tensor.int_repr()": tensor.is_quantized,
        "a tensor with memory": tensor.is_meta,
        "tensor.to_dense()": str(tensor.layout) != "torch.strided",
        # In torch 2.6, the export of a float8 tensor by DLPack raises an error.
        "tensor.view(torch.uint8), or use a newer torch": "dlpack" in str(error),
        "it from outside of torch.vmap, torch.func.grad and the like, which wrap it": True,
    }
    return TensorMapError(
        f"a tensor of {tensor.layout} and {tensor.dtype} on {tensor.device} does not show its elements "
        f"({str(error).partition(chr(10))[0]}). Pass {next(change for change, helps in remedies.items() if helps)}"
    )


def typestr(value: str) -> TensorMapError:
    """Refuse an unknown typestr (__cuda_array_interface__)."""
    return TensorMapError(f"the tensor's typestr {value!r} is not a native number type, which TMA needs")


def mask() -> TensorMapError:
    """Refuse a mask (__cuda_array_interface__)."""
    return TensorMapError("the tensor has a mask, which TMA cannot honor; pass its data")


def byte_strides(strides_bytes: tuple[int, ...], itemsize: int) -> TensorMapError:
    """Refuse strides that are not a whole number of elements (__cuda_array_interface__)."""
    return TensorMapError(
        f"strides {strides_bytes} bytes are not multiples of the element size {itemsize} bytes; copy the tensor"
    )


def rank(shape: tuple[int, ...]) -> TensorMapError:
    """Refuse a rank outside 1 to 5 (CUDA driver API, cuTensorMapEncodeTiled, tensorRank)."""
    if not shape:
        return TensorMapError("the tensor has rank 0; a tensor map has 1 to 5 dimensions. Use tensor.reshape(1)")
    return TensorMapError(
        f"the tensor has rank {len(shape)} (shape {shape}); a tensor map has 1 to 5 dimensions. Merge dimensions that "
        "are contiguous with each other (tensor.flatten or reshape), or make a map for each slice of the outermost one"
    )


def empty(shape: tuple[int, ...]) -> TensorMapError:
    """Refuse an extent below 1 (CUDA driver API, cuTensorMapEncodeTiled, globalDim)."""
    dim = next(dim for dim, extent in enumerate(shape) if extent < 1)
    return TensorMapError(
        f"dimension {dim} of shape {shape} has extent {shape[dim]}; a tensor map needs 1 element or more in each"
    )


# The number of values of each option in _GIVE determines the rank of the tensor.
_GIVE = {
    "box_dim": "give box_dim one for each dimension",
    "pixel_box_lower_corner": "give both corners one for each spatial dimension: (W,) for NWC, (H, W) for NHWC, "
    "(D, H, W) for NDHWC",
    "element_strides": "give element_strides one for each dimension",
}


def option_lengths(options: Any) -> TensorMapError:
    """Refuse options that determine different ranks."""
    name = next(name for name in _GIVE if hasattr(options, name))
    values, element_strides = getattr(options, name), options.element_strides
    return TensorMapError(
        f"element_strides={element_strides} has length {len(element_strides)}, but {name}={values} has length "
        f"{len(values)}; {_GIVE[name]}, and element_strides one for each dimension, in tensor order"
    )


def option_length(options: object, shape: tuple[int, ...]) -> TensorMapError:
    """Refuse an option that determines another rank than the tensor's."""
    name = next(name for name in _GIVE if hasattr(options, name))
    values = getattr(options, name)
    return TensorMapError(
        f"{name}={values} has length {len(values)} for a tensor of rank {len(shape)} (shape {shape}); "
        f"{_GIVE[name]}, in tensor order"
    )


def corner_lengths(lower: tuple[int, ...], upper: tuple[int, ...]) -> TensorMapError:
    """Refuse corners that do not have ``rank - 2`` values each (cuTensorMapEncodeIm2col, pixelBoxLowerCorner)."""
    return TensorMapError(
        f"pixel_box_lower_corner={lower} has length {len(lower)}, but pixel_box_upper_corner={upper} has length "
        f"{len(upper)}; " + _GIVE["pixel_box_lower_corner"]
    )


def option_range(name: str, value: int, kind: str, legal: str) -> TensorMapError:
    """Refuse a number that the driver's interface would truncate to 32 bits."""
    return TensorMapError(f"{name}={shown(value)} does not fit the driver's {kind} 32-bit integer; use {legal}")


def innermost_stride(shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorMapError:
    """Refuse an innermost stride above 1, because the innermost elements of a tensor map are contiguous."""
    last = len(shape) - 1
    text = (
        f"dimension {last}, the innermost, has stride {strides[last]} elements (shape {shape}, strides {strides}); TMA "
        "reads the innermost dimension contiguously, stride 1. "
    )
    contiguous = [dim for dim in range(last) if strides[dim] == 1 and shape[dim] > 1]
    if contiguous:
        order = [dim for dim in range(last + 1) if dim != contiguous[-1]] + [contiguous[-1]]
        return TensorMapError(
            text
            + f"Dimension {contiguous[-1]} is contiguous: pass tensor.permute{tuple(order)} (tensor.T of a matrix), "
            "with box_dim in the same order, or tensor.contiguous()"
        )
    return TensorMapError(
        text + "Pass tensor.contiguous(), or the tensor before it was sliced and skip elements in the kernel"
    )


def negative_stride(dim: int, strides: tuple[int, ...]) -> TensorMapError:
    """Refuse negative strides, because the strides of a map are unsigned (cuTensorMapEncodeTiled, globalStrides)."""
    return TensorMapError(
        f"dimension {dim} has stride {strides[dim]} elements (strides {strides}); TMA has no negative strides. "
        "Pass the tensor before it was flipped, or a contiguous copy"
    )


def stride_range(dim: int, strides: tuple[int, ...]) -> TensorMapError:
    """Refuse strides of 2^40 bytes or more (cuTensorMapEncodeTiled, globalStrides)."""
    return TensorMapError(
        f"dimension {dim} has stride {strides[dim]} elements (strides {strides}); TMA needs less than 2^40 bytes"
    )


def element_size(data_type: int, dtype: str, dtype_bits: int) -> TensorMapError:
    """Refuse a data type whose size differs from that of the tensor's elements, because the strides would be wrong."""
    name = TensorMapDataType(data_type).short_name
    bits = element_bits(data_type)
    if is_packed(data_type):
        return TensorMapError(
            f"data_type={name} packs {bits}-bit elements into bytes, and the tensor's elements are {dtype}, "
            f"{dtype_bits} bits; packed types take storage of 1-byte elements: pass tensor.view(uint8)"
        )
    return TensorMapError(
        f"data_type={name} has {bits}-bit elements and the tensor's are {dtype}, {dtype_bits} bits; every extent and "
        f"stride would be wrong. Choose a data type of {dtype_bits} bits, or view the tensor as {bits}-bit elements"
    )


def packed_extent(data_type: int, extent_bytes: int) -> TensorMapError:
    """Refuse an innermost extent that is not a whole number of packed elements."""
    name = TensorMapDataType(data_type).short_name
    bits = element_bits(data_type)
    return TensorMapError(
        f"the innermost extent is {extent_bytes} bytes, not a whole number of {bits}-bit elements ({name}); "
        f"use a multiple of {bits // 2} bytes"
    )


def host_memory(address: int) -> TensorMapError:
    """Refuse memory that the GPU cannot read."""
    return TensorMapError(
        f"the tensor is in host memory (address {address:#x}), which the GPU cannot read. Move it to the device "
        "(tensor.cuda()), or use pinned or managed memory"
    )


def device_type(device: int) -> TensorMapError:
    """Refuse a DLPack device that is not a CUDA device."""
    return TensorMapError(f"the tensor is on DLPack device type {device}, which is not a CUDA device's memory")


def not_current(own: int, current_device: int) -> TensorMapError:
    """Refuse to create a map on a device that is not current."""
    return TensorMapError(
        f"Device({own}).create_tensor_map was called while device {current_device} is current; "
        f"call Device({own}).set_current() first"
    )


def other_device(tensor_device: int, current_device: int) -> TensorMapError:
    """Refuse a tensor of another device, because a tensor map is created and read in the current context.

    The driver does not report whether peer access is enabled (CU_POINTER_ATTRIBUTE_ACCESS_FLAGS does not change with
    it: two H200s, driver 580). Therefore memory of a peer is accepted only as an address.
    """
    return TensorMapError(
        f"the tensor is on device {tensor_device} and the current device is {current_device}; make device "
        f"{tensor_device} current first: Device({tensor_device}).set_current(). To read it from device "
        f"{current_device} through peer access, pass its address to replace_address as an int"
    )


def no_context() -> TensorMapError:
    """Refuse to encode without a current context (recorded: the driver returns CUDA_ERROR_INVALID_CONTEXT)."""
    return TensorMapError(
        "no CUDA context is current on this thread, and the driver makes tensor maps only in one. "
        "Call cuda.core.Device().set_current() first (torch and CuPy do so at their first operation)"
    )


def driver_failure(error: str, number: int) -> TensorMapError:
    """Return the error for a failure that no argument caused. A wrong argument causes CUDA_ERROR_INVALID_VALUE."""
    return TensorMapError(f"the driver's encoder failed with {error}, for any arguments{explain_error(number)}")


def innermost_element_stride(element_strides: tuple[int, ...]) -> TensorMapError:
    """Refuse a first element stride above 1, which TMA ignores without interleave (recorded on sm_90; documented)."""
    return TensorMapError(
        f"element_strides={element_strides} asks for steps of {element_strides[-1]} elements along the innermost "
        "dimension, which TMA ignores without interleave: it would load all of them. Use 1 there and skip elements in "
        "the kernel"
    )


def replacement(what: str, new: object, old: object) -> TensorMapError:
    """Refuse a tensor that differs in more than the address, because replace_address changes only the address."""
    return TensorMapError(
        f"the tensor's {what} is {new}, and the descriptor was made for {old}; replace_address keeps everything "
        "but the address. Make a new descriptor"
    )


def allocation_class(value: int) -> TensorMapError:
    """Refuse an allocation class that the driver cannot set (CUDA 13.5 driver API, cuTensorMapSetAllocationClass)."""
    name = TensorMapAllocationClass(value).short_name
    return TensorMapError(
        f'allocation_class="{name}" needs a driver with cuTensorMapSetAllocationClass (CUDA 13.5), which this one does '
        "not have; leave it out"
    )


def no_im2col_wide() -> TensorMapError:
    """Refuse an im2col-wide map, because CUDA before 12.8 has no cuTensorMapEncodeIm2colWide."""
    return TensorMapError(
        "this NVIDIA driver has no cuTensorMapEncodeIm2colWide, which came with CUDA 12.8 (driver 570); use "
        "TensorMapIm2colOptions, or a newer driver"
    )


def no_memory() -> TensorMapError:
    """Refuse the address 0, which a wrapper, a fake tensor or a tensor with an empty storage has."""
    return TensorMapError(
        "the tensor has no memory of its own (address 0): it is a wrapper or fake tensor, or its storage was freed. "
        "Pass the tensor that holds the elements"
    )


def other_context(own: int, current: int) -> TensorMapError:
    """Refuse another context, because a map is valid only in contexts that share its memory."""
    return TensorMapError(
        f"the map was made in context {own:#x}, and context {current:#x} is current, which does not share its memory; "
        "replace the address with the map's own context current (Device.set_current), or make a map in this one"
    )


def adopted_address(map_address: int, tensor_address: int) -> TensorMapError:
    """Refuse to create a descriptor from 128 bytes and a tensor if the bytes do not describe the tensor."""
    return TensorMapError(
        f"the tensor map begins at {map_address:#x} and the tensor at {tensor_address:#x}; pass the tensor (or the "
        "slice of it) that the map was made for, or no tensor"
    )


def address_list(shape: tuple[int, ...], dtype: object, count: int) -> TensorMapError:
    """Refuse addresses that are not a sequence with one integer for each map."""
    return TensorMapError(
        f"addresses has shape {shape} and dtype {dtype}; pass {count} integers, one for each tensor map"
    )


def replacement_address(address: int, alignment: int) -> TensorMapError:
    """Refuse an address that a map cannot have (cuTensorMapReplaceAddress, globalAddress)."""
    if not 0 < address < 2**64:
        return TensorMapError(f"address {shown(address)} is not a 64-bit address; pass one above 0 and below 2^64")
    return TensorMapError(
        f"address {address:#x} is not a multiple of {alignment} bytes, which the descriptor needs; "
        f"the nearest lower one is {address - address % alignment:#x}"
    )


# The functions below return errors about arguments of launches.


def foreign_map(argument: int, own: tuple[int, int], launch: tuple[int, int]) -> TensorMapError:
    """Refuse a map from another device or context than that of the launch."""
    return TensorMapError(
        f"argument {argument}: the descriptor was made on device {own[0]} in context {own[1]:#x}, and the launch is on "
        f"device {launch[0]} in context {launch[1]:#x}; a tensor map is valid in its own context. Make it while that "
        "context is current"
    )


def no_stream(value: object) -> TypeError:
    """Refuse an object that has no stream handle."""
    return TypeError(
        f"stream is a {type(value).__name__}; launch takes a cuda.core.Stream, a GraphBuilder or an object with "
        "__cuda_stream__"
    )


def stream_protocol(version: object) -> ValueError:
    """Refuse an unknown version of ``__cuda_stream__`` (documentation of cuda.core)."""
    return ValueError(f"the stream's __cuda_stream__ has version {version}; only version 0 is supported")


def closed_stream() -> ValueError:
    """Refuse a closed stream, because its handle may already belong to another stream."""
    return ValueError(
        "the stream is closed; launch on an open one (Device().create_stream()). cuda.core before 1.2 also shows the "
        "null stream as closed; for it, pass cuda.core.LEGACY_DEFAULT_STREAM"
    )
