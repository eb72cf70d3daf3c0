"""The moves of ldmatrix and stmatrix with elements of 8, 6 and 4 bits, for sm_100 and newer GPUs.

Sources: PTX ISA, "ldmatrix" and "stmatrix". The places of bytes are those of CUTLASS (`Copy_Traits` of
SM100_U8x8_LDSM_T, SM100_U8x4_STSM_T and SM100_SU6_DU8x16_x1_LDSM_N). The function of SM100_U8x8_LDSM_T in CUTLASS
exchanges bytes of the two registers after the instruction, and its traits describe the result. Elements of 6 and 4 bits
become the low bits of a byte. No test on hardware has verified these places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ByteMove", "byte_move_of"]

_THREAD, _BYTE = np.arange(32)[:, None], np.arange(4)[None, :]
_BITS = {"b8": 8, "b6x16_p32": 6, "b4x16_p64": 4}


@dataclass(frozen=True)
class ByteMove:
    """A move of `count` registers; each register corresponds to 8 rows of 16 bytes, whose addresses are in 8 lanes.

    Attributes
    ----------
    count : int
    bits : int
        The bits of an element; a row begins with 16 elements.
    form : str
        ``"m16n16"``, ``"m8n16"`` or ``"m16n8"``.
    """

    count: int
    bits: int
    form: str

    @property
    def read_bytes(self) -> int:
        """Return the bytes of a row that a load reads, which do not include the padding after the elements."""
        return 16 * self.bits // 8

    def to_registers(self, rows: np.ndarray) -> np.ndarray:
        """Return the bytes of rows, uint8 [warps, 8 * count, 16], as registers, uint32 [count, warps, 32]."""
        row, column = self._places()
        found = np.ascontiguousarray(self._elements(rows)[:, row, column])
        return found.view(np.uint32)[..., 0].swapaxes(0, 1)

    def to_rows(self, registers: np.ndarray) -> np.ndarray:
        """Return the rows for registers; this is the inverse of `to_registers`."""
        row, column = self._places()
        given = np.ascontiguousarray(registers.swapaxes(0, 1))[..., None].view(np.uint8)
        found = np.zeros((len(given), 8 * self.count, 16), np.uint8)
        found[:, row, column] = given
        return found

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the column of each byte as arrays [register, thread, byte]."""
        register = np.arange(self.count)[:, None, None]
        if self.form == "m8n16":
            row, column = 8 * register + _THREAD // 4, 4 * (_THREAD % 4) + _BYTE
        elif self.form == "m16n16":
            row, column = register // 2 * 16 + 4 * (_THREAD % 4) + _BYTE, _THREAD // 4 + 8 * (register % 2)
        else:
            row, column = 8 * register + 2 * (_THREAD % 4) + _BYTE % 2, _THREAD // 4 + 8 * (_BYTE // 2)
        shape = (self.count, 32, 4)
        return np.broadcast_to(row, shape), np.broadcast_to(column, shape)

    def _elements(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows unpacked to one byte for each element."""
        if self.bits == 8:
            return rows
        each = np.unpackbits(np.ascontiguousarray(rows), axis=-1, bitorder="little")[..., : 16 * self.bits]
        weights = (1 << np.arange(self.bits)).astype(np.uint8)
        return (each.reshape(*rows.shape[:-1], 16, self.bits) * weights).sum(axis=-1, dtype=np.uint8)


def byte_move_of(opcode: tuple[str, ...]) -> ByteMove | None:
    """Return the move of an opcode; None if its elements have 16 bits."""
    words = {*opcode[1:]} - {"shared", "shared::cta", "sync", "aligned"}
    is_load, is_transposed = opcode[0] == "ldmatrix", "trans" in words
    form = next((form for form in ("m16n16", "m8n16", "m16n8") if form in words), "")
    times = next((times for times in (1, 2, 4) if f"x{times}" in words), 0)
    type_ = next((type_ for type_ in _BITS if type_ in words), "")
    packed = {"b8x16"} if type_ not in ("", "b8") else set()
    if words - {"trans"} != {form, f"x{times}", type_} | packed or not {"sync", "aligned"} <= {*opcode}:
        return None
    is_known = {
        "m16n16": is_load and is_transposed and times < 4,
        "m8n16": is_load and not is_transposed and type_ != "b8",
        "m16n8": not is_load and is_transposed and type_ == "b8",
    }
    return ByteMove(times * (1 + (form == "m16n16")), _BITS[type_], form) if is_known[form] else None
