"""Functions that refuse invalid arguments, and accesses that end a CUDA context on hardware."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._errors import TensorMapError, TensorMapFault
from .._given import integer, shown
from ..enums import TensorMapDataType as T
from ..params import Im2colParams, Params
from ..smem._layout import chunk_elements

__all__ = [
    "byte",
    "check_alignment",
    "check_bytes",
    "check_not_negative",
    "check_pixel_box_inside",
    "check_reachable",
    "check_start_in_box",
]


# Arguments ----------------------------------------------------------------------------------------------------------


def check_bytes(name: str, array: object, meaning: str) -> None:
    """Refuse an argument that is not a 1-D uint8 array."""
    if isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.ndim == 1:
        return
    raise TensorMapError(
        f"{name} is {shown(array)}; pass {meaning} as a 1-D uint8 array, e.g. array.reshape(-1).view(numpy.uint8)"
    )


def byte(name: str, value: object) -> int:
    """Return the value as an int from 0 to 255."""
    if 0 <= (found := integer(name, value)) <= 255:
        return found
    raise TensorMapError(f"{name}={shown(found)} is not a byte; pass 0 to 255")


# Accesses -----------------------------------------------------------------------------------------------------------


def check_alignment(params: Params, innermost: int) -> None:
    """Raise a fault for an innermost coordinate whose byte offset is not a multiple of 16.

    The rule was observed with driver 580 and sm_90 for loads, stores and reductions, tiled and im2col. For packed
    types, the rule is documented, but was not observed. This rule does not hold for interleaved layouts, because their
    innermost coordinate counts slices of 16 or 32 bytes.
    """
    multiple = chunk_elements(params.data_type)
    if params.interleave or innermost % multiple == 0:
        return
    below = innermost // multiple * multiple
    raise TensorMapFault(
        f"coordinates[0]={innermost} is not a multiple of {multiple} elements of {T(params.data_type).short_name}: "
        f"without interleave the innermost coordinate must be at a multiple of 16 bytes; use {below} or "
        f"{below + multiple}",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    )


def check_start_in_box(name: str, start: int, lower: int, upper: int) -> None:
    """Raise a fault for an im2col start (without the offsets) outside the pixel box.

    The rule was observed with driver 580 and sm_90 for loads with and without interleave, and for stores and reductions
    without interleave that start after the box. The rule is assumed for other cases. ``upper`` is inclusive.
    """
    if lower <= start <= upper:
        return
    raise TensorMapFault(
        f"{name}={start} is outside the pixel box, which spans {lower} to {upper} in this dimension "
        "(pixel_box_lower_corner to global_dim - 1 + pixel_box_upper_corner); start inside, and shift with offsets",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    )


def check_not_negative(coordinates: Sequence[int]) -> None:
    """Raise a fault for a negative coordinate of a store or reduction. A load may have a negative coordinate.

    The rule was observed with driver 580 and sm_90 in every dimension of tiled maps with every interleave, and of
    im2col maps without interleave. The rule is assumed for interleaved im2col.
    """
    for d, coordinate in enumerate(coordinates):
        if coordinate < 0:
            raise TensorMapFault(
                f"coordinates[{d}]={coordinate} is negative, but only a load may start before the tensor; start the "
                "store inside the tensor (a store skips elements after its end)",
                "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            )


def check_pixel_box_inside(params: Params) -> None:
    """Raise a fault for a store or reduction whose pixel box is partly outside the tensor.

    The instruction faults even if it visits no pixel outside the tensor.

    The rule was observed with driver 580 and sm_90 for stores and reductions without interleave, for lower and upper
    corners. The rule is assumed for interleaved layouts.
    """
    if not isinstance(params, Im2colParams):
        return
    for name, sign in (("pixel_box_lower_corner", 1), ("pixel_box_upper_corner", -1)):
        for d, corner in enumerate(getattr(params, name)):
            if sign * corner < 0:
                raise TensorMapFault(
                    f"{name}[{d}]={corner} is outside the tensor, where only a load may begin or end; store through a "
                    "tensor map whose lower corners are at least 0 and whose upper corners are at most 0",
                    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
                )


def check_reachable(first: int, last: int, size: int) -> None:
    """Raise a fault for an access to bytes [first, last) that are outside the `size` bytes of the passed memory."""
    if first >= 0 and last <= size:
        return
    raise TensorMapFault(
        f"the instruction accesses bytes {first} to {last - 1} of memory, which has {size} bytes, fewer than "
        "global_dim and global_strides describe; pass all the memory of the tensor, or pass as base_address the "
        "address at which the memory starts",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
    )
