"""The functions and values that several tests of integer instructions share."""

from __future__ import annotations

from cuda_tma.simulate._ptx import TYPE_BYTES
from tests.support.pure_instructions import signed


def width(type_: str) -> int:
    return 8 * TYPE_BYTES[type_]


def number(bits: int, type_: str) -> int:
    return signed(bits, width(type_)) if type_[0] == "s" else bits


def wrapped(value: int, type_: str) -> int:
    return value & (1 << width(type_)) - 1


def fitted(value: int, type_: str) -> int:
    least, most = (
        (0, (1 << width(type_)) - 1) if type_[0] != "s" else (-(1 << width(type_) - 1), (1 << width(type_) - 1) - 1)
    )
    return wrapped(min(max(value, least), most), type_)
