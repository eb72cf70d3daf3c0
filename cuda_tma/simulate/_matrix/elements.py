"""The types of factors and sums of tensor cores (PTX ISA, "wgmma.mma_async" and "mma")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .formats import FORMATS
from .fragments import packed, unpacked

_INTEGERS: dict[str, np.dtype] = {"s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "f64": np.dtype(np.float64)}
_BITS = {"s4": 4, "u4": 4, "b1": 1}
_WIDTHS = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}


def element_bits(type_: str) -> int:
    return _BITS.get(type_) or 8 * (_INTEGERS[type_].itemsize if type_ in _INTEGERS else _WIDTHS[type_])


def element_bytes(type_: str) -> int:
    return element_bits(type_) // 8


def decoded(data: np.ndarray, type_: str) -> np.ndarray:
    """Return bytes, [..., bytes], as float64, which can represent all values of the types of factors.

    The last 13 bits of a tf32 are ignored.
    """
    data = np.ascontiguousarray(data)
    if type_ in _BITS:
        bits = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], -1, _BITS[type_])
        return bits @ np.array({"s4": (1, 2, 4, -8), "u4": (1, 2, 4, 8), "b1": (1,)}[type_], np.float64)
    if type_ in _INTEGERS:
        return data.view(_INTEGERS[type_]).astype(np.float64)
    return FORMATS[type_].decode(data.view(f"u{_WIDTHS[type_]}"))


@dataclass(frozen=True)
class Sums:
    """The type of the sums of a product, and the representation of the sums in registers.

    Sums of s32 wrap, or saturate if `saturate` is true. `multiply_add` rounds sums of the other types.
    """

    type: str
    saturate: bool = False

    @property
    def register_dtype(self) -> np.dtype:
        return np.dtype({"f32": np.float32, "f16": np.uint32, "s32": np.int32, "f64": np.float64}[self.type])

    def unpack(self, registers: np.ndarray) -> np.ndarray:
        """Return the sums in registers as float64, with one element for each sum."""
        if self.type == "f16":
            return FORMATS["f16"].decode(unpacked(registers.view(np.uint32)))
        return registers.view(self.register_dtype).astype(np.float64)

    def pack(self, sums: np.ndarray) -> np.ndarray:
        if self.type == "f64":
            return sums
        if self.type == "s32":
            ends = np.iinfo(np.int32)
            whole = np.clip(sums, ends.min, ends.max) if self.saturate else sums
            return whole.astype(np.int64).astype(np.int32)
        if self.type == "f32":
            return FORMATS["f32"].encode(sums)
        return packed(FORMATS["f16"].encode(FORMATS["f16"].round(sums)))
