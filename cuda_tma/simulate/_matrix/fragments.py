"""The conversion between matrices and their fragments in registers, for any number of adjacent warps.

In a fragment of 8 rows by 16 bytes, lane i has the four bytes of row i / 4 that begin at byte i % 4 * 4. Arrays of
registers have the order [register, lane]. Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "Register Fragments
for wgmma.mma_async.m64nNk16". Bytes have the same places for every type of element.
"""

from __future__ import annotations

import numpy as np

_GROUPS, _QUADS = 8, 4  # A warp holds eight rows of a matrix, with four lanes for each row.


def rows_of_16(registers: np.ndarray) -> np.ndarray:
    """Return the matrix A with 16 rows in each warp, bytes [warps * 16, 16 or 32].

    The registers are uint32 [2 or 4, warps * 32]. The second register contains the row that is 8 rows below the row of
    the first register. The third and fourth registers contain the next 16 bytes of these rows.
    """
    pieces = len(registers) // 2
    parts = np.ascontiguousarray(registers).reshape(pieces, 2, -1, _GROUPS, _QUADS)
    return np.ascontiguousarray(parts.transpose(2, 1, 3, 0, 4)).view(np.uint8).reshape(-1, 16 * pieces)


def rows_of_8(registers: np.ndarray) -> np.ndarray:
    """Return B with 8 columns in each warp, or A with 8 rows, as bytes, [warps * 8, 16 or 32].

    The registers are uint32 [1 or 2, warps * 32].
    """
    pieces = len(registers)
    parts = np.ascontiguousarray(registers).reshape(pieces, -1, _GROUPS, _QUADS)
    return np.ascontiguousarray(parts.transpose(1, 2, 0, 3)).view(np.uint8).reshape(-1, 16 * pieces)


def sums_to_rows(registers: np.ndarray, halves: int = 2) -> np.ndarray:
    """Return the matrix C with 8 * halves rows in each warp, [warps * 8 * halves, columns].

    The registers are [columns / 8 * halves * 2, warps * 32]. Register i of a lane contains the sum in column i / (2 *
    halves) * 8 + lane % 4 * 2 + i % 2. With two halves, the row of a sum is 8 rows lower if i / 2 is odd.
    """
    eights = len(registers) // (2 * halves)
    parts = registers.reshape(eights, halves, 2, -1, _GROUPS, _QUADS)
    return parts.transpose(3, 1, 4, 0, 5, 2).reshape(-1, 8 * eights)


def rows_to_sums(rows: np.ndarray, halves: int = 2) -> np.ndarray:
    """Return the registers for rows; this is the inverse of `sums_to_rows`."""
    eights = rows.shape[1] // 8
    parts = rows.reshape(-1, halves, _GROUPS, eights, _QUADS, 2)
    return np.ascontiguousarray(parts.transpose(3, 1, 5, 0, 2, 4)).reshape(2 * halves * eights, -1)


def unpacked(registers: np.ndarray) -> np.ndarray:
    """Unpack registers with two 16-bit sums each to registers with one sum each.

    The sum in the lower half of a register comes first.
    """
    pairs = np.ascontiguousarray(registers).view(np.uint16).reshape(*registers.shape, 2)
    return np.ascontiguousarray(pairs.transpose(0, 2, 1)).reshape(-1, registers.shape[1])


def packed(sums: np.ndarray) -> np.ndarray:
    """Return registers with two 16-bit sums each; this is the inverse of `unpacked`."""
    pairs = sums.reshape(-1, 2, sums.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(pairs).view(np.uint32)[..., 0]
