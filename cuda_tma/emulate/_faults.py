"""Refusals: arguments that make no sense, and accesses that kill a CUDA context on hardware."""

from __future__ import annotations

from collections.abc import Sequence

from ..data_type import element_bits
from ..enums import TensorMapDataType as T
from ..errors import TensorMapError, TensorMapFault
from ..params import Params

__all__ = ["check_alignment", "check_count", "check_reachable", "check_start_in_box"]

_ALIGNMENT_BYTES = 16
_PACKED_ALIGN16B_ELEMENTS = 128  # PTX ISA 9.0, "Restriction on Tensor Copy instructions"


def check_count(name: str, values: Sequence[int], count: int, meaning: str) -> None:
    """Refuse a vector of the wrong length."""
    if len(values) != count:
        raise TensorMapError(f"{name}={tuple(values)} has {len(values)} values, and needs {count}: {meaning}")


def _coordinate_multiple(params: Params) -> int:
    """Elements of which the innermost coordinate must be a multiple."""
    if params.data_type in (T.PACKED_16U4_ALIGN16B, T.PACKED_16U6_ALIGN16B):
        return _PACKED_ALIGN16B_ELEMENTS
    return max(1, _ALIGNMENT_BYTES * 8 // element_bits(params.data_type))


def check_alignment(params: Params, innermost: int) -> None:
    """Fault on an innermost coordinate whose byte offset is not a multiple of 16.

    Observed: driver 580, sm_90, tiled without interleave. Interleaved layouts have no such rule: their innermost
    coordinate counts slices of 16 or 32 bytes. Packed types: documented only.
    """
    multiple = _coordinate_multiple(params)
    if params.interleave or innermost % multiple == 0:
        return
    below = innermost // multiple * multiple
    raise TensorMapFault(
        f"coordinates[0]={innermost} is not a multiple of {multiple} elements of {T(params.data_type).short_name}: "
        f"without interleave the innermost coordinate must lie on 16 bytes; use {below} or {below + multiple}",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    )


def check_start_in_box(name: str, start: int, lower: int, upper: int) -> None:
    """Fault on an im2col start outside the pixel box, offsets not included.

    Observed: driver 580, sm_90, for the interleaved layouts; taken to hold without interleave, where no recording
    starts outside. ``upper`` is inclusive.
    """
    if lower <= start <= upper:
        return
    raise TensorMapFault(
        f"{name}={start} starts outside the pixel box, which spans {lower} to {upper} in this dimension "
        "(pixel_box_lower_corner to global_dim - 1 + pixel_box_upper_corner); start inside, and shift with offsets",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    )


def check_reachable(first: int, last: int, size: int) -> None:
    """Fault on bytes [first, last) outside the given memory of `size` bytes."""
    if first >= 0 and last <= size:
        return
    raise TensorMapFault(
        f"the instruction reaches bytes {first} to {last - 1} of memory, which holds {size}: global_dim and "
        "global_strides describe more than was given; pass all the memory of the tensor, or the base_address at which "
        "it starts",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
    )
