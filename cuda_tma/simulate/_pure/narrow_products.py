"""The instructions mma.sync of sm_120 with a kind: factors of 8, 6 and 4 bits, without and with block scales.

An element of fewer bits than its byte is in the middle of the byte: bits 0 to 5 for 6 bits, and bits 2 to 5 for 4 bits.
The kinds mxf4 and mxf4nvf4 have two elements of 4 bits in a byte. The places of the scales are those of PTX ISA, "Block
Scaling" of "mma", and of CUTLASS 4.7 (`cute/atom/mma_traits_sm120.hpp`); they are not verified on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._matrix.adder import multiply_add
from .._matrix.elements import Sums
from .._matrix.formats import FORMATS
from .._matrix.fragments import rows_of_8, rows_of_16, rows_to_sums, sums_to_rows
from .._matrix.padded import PADDED, decoded_bytes, decoded_packed
from .._matrix.scaled import KINDS, count_of_scales, multiply_add_scaled, scale_bytes, scale_numbers
from .table import Pure, Spelling, pure

__all__ = ["multiply_narrow"]

Array = Any

_ELEMENTS = ("e4m3", "e5m2", *sorted(PADDED))
_A_REGISTERS, _B_REGISTERS = 4, 2
_ROWS, _COLUMNS, _WARP = 16, 8, 32
# The scales of A are in a pair of the 4 lanes of a group, and the scales of B in one lane (PTX ISA, "Block Scaling").
_A_THREADS, _B_THREADS = (0, 1), (0, 1, 2, 3)


@dataclass(frozen=True)
class _Factors:
    """The types of A and B, and the scales of the product.

    Attributes
    ----------
    a_type, b_type : str
    is_packed : bool
        Whether a byte contains two elements.
    scales : int
        The number of scales along K; 0 without scales.
    scale_type : str
    """

    a_type: str
    b_type: str
    is_packed: bool
    scales: int
    scale_type: str

    def numbers(self, data: Array, type_: str) -> Array:
        """Return the numbers, float64 [rows, k], in rows of 32 bytes."""
        if self.is_packed:
            return decoded_packed(data)
        return decoded_bytes(data, type_) if type_ in PADDED else FORMATS[type_].decode(data)

    def product(self, a: Array, b: Array, c: Array, scales: tuple[Array, ...], sums: str) -> Array:
        """Return A * B + C for registers [register, warps * 32] of A and B, and C as [warps, 16, 8]."""
        x = self.numbers(rows_of_16(a), self.a_type).reshape(len(c), _ROWS, -1)
        y = self.numbers(rows_of_8(b), self.b_type).reshape(len(c), _COLUMNS, -1)
        if not self.scales:
            # The type f16 represents each element exactly, and selects sums with 25 bits of each term.
            return multiply_add(x, y, c, ("f16", "f16"), sums)
        a_data, a_byte, a_thread, b_data, b_byte, b_thread = scales
        left, right = np.arange(_ROWS), np.arange(_COLUMNS)
        of_a = self._scales(a_data, a_byte, left % 8 * 4 + left // 8, 2 * (a_thread & 1))
        of_b = self._scales(b_data, b_byte, right * 4, b_thread & 3)
        return multiply_add_scaled(x, y, c, of_a, of_b)

    def fault(self, active: Array, *sources: Array) -> str:
        """Return a description of an invalid selector of scales; empty if the selectors of each warp are valid."""
        a_byte, a_thread, _, b_byte, b_thread = sources[-5:]
        of_bytes, count = scale_bytes(self.scales), f"with {self.scales} scale{'s' * (self.scales > 1)} along K "
        given = (("byte-id", "A", a_byte, of_bytes, count), ("thread-id", "A", a_thread, _A_THREADS, ""),
                 ("byte-id", "B", b_byte, of_bytes, count), ("thread-id", "B", b_thread, _B_THREADS, ""))  # fmt: skip
        for name, matrix, values, valid, case in given:
            first = np.broadcast_to(values, active.shape)[:, 0]
            wrong = first[~np.isin(first, valid)]
            if len(wrong):
                allowed = " or ".join(map(str, valid))
                return (
                    f"the {name} of the scales of {matrix} is {wrong[0]}, but {case}it must be {allowed} (PTX ISA, "
                    f'"Block Scaling" of "mma"). Remedy: pass {allowed}'
                )
        return ""

    def _scales(self, data: Array, byte: Array, lanes: Array, offset: Array) -> Array:
        """Return the scales, float64 [warps, rows, scales], whose registers are in some lanes of each warp.

        The first lane of a warp contains the offset of these lanes, and the number of the first byte of the scales in a
        register.
        """
        at = lanes[None] + offset[:, :1]
        codes = np.ascontiguousarray(np.take_along_axis(data, at.astype(np.intp), 1)).view(np.uint8)
        places = (byte[:, :1, None].astype(np.intp) + np.arange(self.scales)) % 4
        codes = codes.reshape(*at.shape, 4)
        return scale_numbers(
            np.take_along_axis(codes, np.broadcast_to(places, (*at.shape, self.scales)), 2), self.scale_type
        )


def multiply_narrow(s: Spelling) -> Pure:
    """Return ``mma.sync`` with ``.kind::f8f6f4``, ``.kind::mxf8f6f4``, ``.kind::mxf4`` or ``.kind::mxf4nvf4``."""
    factors, d_type = _factors(s)
    sums = Sums(d_type)
    register, count = ("b32", 2) if d_type == "f16" else ("f32", 4)

    def compute(active: Array, *registers: Array) -> tuple[Array, ...]:
        given = [np.broadcast_to(np.asarray(each), active.shape) for each in registers]
        flat = [np.ascontiguousarray(each).reshape(-1) for each in given]
        ends = _A_REGISTERS, _A_REGISTERS + _B_REGISTERS, _A_REGISTERS + _B_REGISTERS + count
        a, b, c = np.stack(flat[: ends[0]]), np.stack(flat[ends[0] : ends[1]]), np.stack(flat[ends[1] : ends[2]])
        before = sums_to_rows(sums.unpack(c)).reshape(-1, _ROWS, _COLUMNS)
        found = factors.product(a, b, before, tuple(given[ends[2] :]), d_type)
        packed = sums.pack(rows_to_sums(found.reshape(-1, _COLUMNS)))
        return tuple(packed.reshape(len(packed), -1, _WARP))

    of_scales = "b32 u16 u16 b32 u16 u16" if factors.scales else ""
    sources = f"{'b32 ' * (_A_REGISTERS + _B_REGISTERS)}{f'{register} ' * count}{of_scales}"
    fault = factors.fault if factors.scales else None
    return pure("mma", " ".join([register] * count), sources, compute, warp=True, fault=fault)


def _factors(s: Spelling) -> tuple[_Factors, str]:
    """Return the factors and the type of the sums of an opcode, whose kind may precede or follow the shape."""
    for word in ("sync", "aligned", "row", "col"):
        if not s.flag(word):
            s.unknown()
    kind = s.choice("kind::f8f6f4", *(f"kind::{kind}" for kind in KINDS)).removeprefix("kind::")
    scales, scale_type = _scales(s, kind) if kind in KINDS else (0, "")
    is_packed = kind in ("mxf4", "mxf4nvf4")
    elements = ("e2m1",) if is_packed else _ELEMENTS
    c_type = s.type("f32", "f16")
    b_type, a_type = s.type(*elements), s.type(*elements)
    if not s.flag("m16n8k64" if is_packed else "m16n8k32") or s.type("f32", "f16") != c_type:
        s.unknown()
    if scales and c_type != "f32":
        s.unknown()
    return _Factors(a_type, b_type, is_packed, scales, scale_type), c_type


def _scales(s: Spelling, kind: str) -> tuple[int, str]:
    """Return the number of scales along K, and their type, which must be one that ptxas 13.0 accepts."""
    size = s.choice("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", default="")
    count = count_of_scales(kind, (size,))
    if count is None or not s.flag("block_scale"):
        s.unknown()
    return count, s.type("ue4m3" if count == 4 else "ue8m0")
