"""Checks of the maps that can be emulated.

A driver must accept the map, and its box must fit into shared memory.
"""

from __future__ import annotations

from dataclasses import fields

from .._errors import TensorMapError
from .._given import shown
from .._limits import TMA_EXTENDED_SINCE
from .._params_checks import check_params
from ..params import Params
from ..rules import check as violations
from ..smem._kept import kept_without_address
from ..smem._layout import Rows, check_fits, rows

__all__ = ["emulated_rows"]

_LARGEST_ALIGNMENT = 32  # _LARGEST_ALIGNMENT is the largest alignment of an address in bytes.
_LARGEST_FIELD = 1 << 40  # No field of a tensor map except the address has more than 40 bits.


def emulated_rows(params: Params, check: bool) -> Rows:
    """Return the box in shared memory.

    Refuse a map that cannot be emulated, and with `check` a map that the driver always refuses.
    """
    check_params(params)
    if check:
        _check_legal(params)
    else:
        _check_size_of_fields(params)
    layout = rows(params)
    check_fits(layout.count * layout.pitch_bytes)
    return layout


def _check_legal(params: Params) -> None:
    """Check a map by the rules of devices with extended TMA, which accept all maps that earlier devices accept."""
    if 0 <= params.global_address < 1 << 64 and _is_legal(params):
        return
    broken = violations(params, TMA_EXTENDED_SINCE)
    raise TensorMapError("\n".join(["no driver accepts this tensor map:", *map(str, broken)]), broken)


@kept_without_address(1024, modulus=_LARGEST_ALIGNMENT)
def _is_legal(params: Params) -> bool:
    return not violations(params, TMA_EXTENDED_SINCE)


@kept_without_address(1024)
def _check_size_of_fields(params: Params) -> None:
    for field in fields(params):
        value = getattr(params, field.name)
        values = value if isinstance(value, tuple) else (value,)
        if field.name != "unexplained" and any(abs(number) > _LARGEST_FIELD for number in values):
            raise TensorMapError(
                f"{field.name}={shown(value)} has more than 40 bits, the most of any field of a tensor map; pass a "
                "smaller value"
            )
