"""Checks of the argument `params`, for pure functions."""

from __future__ import annotations

from dataclasses import fields

from ._errors import TensorMapError
from ._given import shown
from .params import Params

_READABLE_BITS = 128  # No parameter of the driver has more than 64 bits.


def check_params(params: object) -> None:
    """Refuse an argument that is not a parameters object."""
    if not isinstance(params, Params) or type(params) is Params:
        raise TensorMapError(
            f"params is {shown(params)}; pass TiledParams, Im2colParams or Im2colWideParams: the `.params` of a "
            "descriptor, or the result of cuda_tma.decode() for its 128 bytes"
        )


def check_sizes(params: Params) -> None:
    """Refuse numbers that are too large for a message. Python refuses to write more than 4300 digits."""
    for field in fields(params):
        value = getattr(params, field.name)
        values = value if field.type == "tuple[int, ...]" else (value,) if field.type == "int" else ()
        if any(number.bit_length() > _READABLE_BITS for number in values):
            raise TensorMapError(f"{field.name} is {shown(value)}; pass numbers of at most {_READABLE_BITS} bits")
