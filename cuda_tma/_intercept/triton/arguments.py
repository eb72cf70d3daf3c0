"""The conversion of a Triton launch's arguments from Triton's types to the parameters of the kernel in PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import rules
from ...params import Im2colParams, TiledParams
from ...rules._explain import refusal
from ...simulate._tensor_map import TensorMap

__all__ = ["Descriptors", "flat"]

_FLOATS = {"fp16": np.float16, "fp32": np.float32, "f32": np.float32, "fp64": np.float64}
_INTEGERS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
# For three data types, the numbers in Triton's metadata differ from those of CUtensorMapDataType.
_HOST_TYPES = {8: 10, 9: 8, 10: 9}
_TFLOAT32 = 11
_L2_128B = 2

Address = Callable[[Any], int]


class Descriptors:
    """A converter of Triton's host descriptors to tensor maps.

    Parameters
    ----------
    metadata : sequence of mapping
        The metadata of Triton for each descriptor, in order. The metadata is empty if the kernel has several parameters
        in place of each descriptor.
    compute_capability : tuple of int
    address : callable
        The function that returns the GPU's address of a tensor.
    """

    def __init__(self, metadata: Sequence[Any] | None, compute_capability: tuple[int, int], address: Address):
        self._metadata, self._compute_capability, self._address = metadata or (), compute_capability, address

    def begin(self) -> Iterator[Any]:
        """Return an iterator over the metadata, for the descriptors of one launch."""
        return iter(self._metadata)

    def parts(self, descriptor: Any, metadata: Any) -> Iterator[tuple[Any, str]]:
        """Yield each kernel parameter for a descriptor, with the parameter's type."""
        shape, strides = descriptor.shape, descriptor.strides
        if metadata is None:
            yield descriptor.base, "*"
            yield from ((extent, "i64") for extent in (*shape, *strides))
            yield descriptor.padding == "nan", "i1"
            if hasattr(descriptor, "round_f32_to_tf32"):
                yield descriptor.round_f32_to_tf32, "i1"
        else:
            yield self._map(descriptor, metadata), "nvTmaDesc"
        yield from ((extent, "i32") for extent in shape)
        yield from ((stride, "i64") for stride in strides)

    def _map(self, descriptor: Any, metadata: Any) -> TensorMap:
        params = self._params(descriptor, metadata)
        broken = rules.check(params, self._compute_capability)
        if broken:
            raise refusal(params, broken)
        return TensorMap(params, descriptor.base)

    def _params(self, descriptor: Any, metadata: Any) -> TiledParams | Im2colParams:
        shape = [*descriptor.shape]
        shape[-1] *= 2 if metadata["fp4_padded"] else 1
        element_type = metadata["elem_type"]
        if getattr(descriptor, "round_f32_to_tf32", False):
            element_type = _TFLOAT32
        rank, box = len(shape), tuple(metadata["block_size"][::-1])
        common = {
            "data_type": _HOST_TYPES.get(element_type, element_type),
            "global_address": self._address(descriptor.base),
            "global_dim": tuple(shape[::-1]),
            "global_strides": tuple(stride * metadata["elem_size"] for stride in descriptor.strides[-2::-1]),
            "interleave": 0,
            "swizzle": metadata["swizzle"],
            "l2_promotion": _L2_128B,
            "oob_fill": int(descriptor.padding == "nan"),
        }
        if not metadata.get("is_im2col"):
            return TiledParams(**common, element_strides=(1,) * rank, box_dim=box)
        return Im2colParams(
            **common,
            element_strides=tuple((descriptor.element_strides or [1] * rank)[::-1]),
            pixel_box_lower_corner=tuple(descriptor.pixel_box_lower_corner[::-1]),
            pixel_box_upper_corner=tuple(descriptor.pixel_box_upper_corner[::-1]),
            channels_per_pixel=box[0],
            pixels_per_column=box[1],
        )


def flat(values: Sequence[Any], types: Sequence[Any], descriptors: Descriptors) -> list[Any]:
    """Return the arguments of the kernel in PTX. Tuples and descriptors are expanded, and constants are omitted."""
    metadata = descriptors.begin()
    return [_argument(value, of_type) for value, of_type in _spread(values, types, descriptors, metadata)]


def _spread(
    values: Sequence[Any], types: Sequence[Any], descriptors: Descriptors, metadata: Iterator[Any]
) -> Iterator[tuple[Any, str]]:
    for value, of_type in zip(values, types, strict=True):
        if isinstance(of_type, tuple):
            yield from _spread(value, of_type, descriptors, metadata)
        elif of_type.startswith("tensordesc"):
            yield from descriptors.parts(value, next(metadata, None))
        elif of_type != "constexpr":
            yield value, of_type


def _argument(value: Any, of_type: str) -> Any:
    """Return an argument in the form that :meth:`Device.launch` accepts."""
    if of_type == "nvTmaDesc":
        return value
    if of_type[0] == "*":
        return _pointer(value)
    if of_type in _FLOATS:
        return _FLOATS[of_type](value)
    if of_type == "bf16":
        return _bfloat16(float(value))
    bits = max(int(of_type[1:]), 8)
    return _INTEGERS[bits](int(value) % (1 << bits))


def _pointer(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value or 0
    if hasattr(value, "untyped_storage"):
        return value
    # Triton's class TensorWrapper has the wrapped tensor in the attribute `base`.
    if hasattr(value, "base") and hasattr(value.base, "untyped_storage"):
        return value.base
    return int(value.data_ptr())


def _bfloat16(value: float) -> np.uint16:
    """Round a number to bfloat16, with ties to even, as Triton's launcher does."""
    bits = int(np.float32(value).view(np.uint32))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return np.uint16(bits >> 16 | 0x40)
    return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
