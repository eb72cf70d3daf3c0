"""The tensor maps of the driver's interface, which the package's encoder makes by its own rules."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from ... import codec, rules
from ...params import Im2colParams, Im2colWideParams, Params, TiledParams
from ...rules._explain import refusal

__all__ = ["tensor_map"]

_REQUEST = struct.Struct("<10I5I5I5i5i2IQ5Q5Q")
_TILED, _IM2COL, _IM2COL_WIDE, _REPLACE = range(4)


def tensor_map(data: bytes, compute_capability: tuple[int, int]) -> bytes:
    """Return the 128 bytes of the tensor map that a request describes.

    Raises
    ------
    TensorMapError
        If the driver would refuse the parameters. The error contains the broken rule.
    """
    values = _REQUEST.unpack_from(data)
    if values[0] == _REPLACE:
        params = replace(codec.decode(data[_REQUEST.size :]), global_address=values[32])
    else:
        params = _params(values)
    broken = rules.check(params, compute_capability)
    if broken:
        raise refusal(params, broken)
    return codec.encode(params)


def _params(values: tuple[int, ...]) -> Params:
    mode, data_type, rank, interleave, swizzle, l2_promotion, oob_fill, wide_mode, channels, pixels = values[:10]
    box, element_strides, lower, upper = (values[at : at + 5] for at in (10, 15, 20, 25))
    common: dict[str, Any] = {
        "data_type": data_type,
        "global_address": values[32],
        "global_dim": values[33 : 33 + rank],
        "global_strides": values[38 : 38 + rank - 1],
        "element_strides": element_strides[:rank],
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": l2_promotion,
        "oob_fill": oob_fill,
    }
    if mode == _TILED:
        return TiledParams(**common, box_dim=box[:rank])
    common |= {"channels_per_pixel": channels, "pixels_per_column": pixels}
    if mode == _IM2COL:
        end = rank - 2
        return Im2colParams(**common, pixel_box_lower_corner=lower[:end], pixel_box_upper_corner=upper[:end])
    return Im2colWideParams(
        **common, pixel_box_lower_corner_width=lower[0], pixel_box_upper_corner_width=upper[0], mode=wide_mode
    )
