"""The instructions mma.sync and movmatrix, whose matrices are in the registers of a warp.

Source: PTX ISA, "mma" and "movmatrix".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .._matrix.adder import NARROW, multiply_add, multiply_add_as_f16
from .._matrix.elements import Sums, decoded, element_bits
from .._matrix.fragments import rows_of_8, rows_of_16, rows_to_sums, sums_to_rows
from .._matrix.moves import MatrixMove
from .narrow_products import multiply_narrow
from .table import Pure, Spelling, entry, pure

Array = Any

_SHAPE = re.compile(r"m(8|16)n8k(\d+)")
_INPUTS = {
    "f32": (("f16",), ("bf16",), ("tf32",), NARROW), "f16": (("f16",), NARROW),
    "s32": (("s8", "u8"), ("s4", "u4"), ("b1",)), "f64": (("f64",),),
}  # fmt: skip


@entry("mma")
def multiply(s: Spelling) -> Pure:
    """Return the instruction mma, which computes D = A * B + C.

    A has 16 rows of 16 or 32 bytes, or 8 rows of 16 bytes for integers. For f64, A has 8 or 16 rows of 4 to 16
    elements.
    """
    if any(word.startswith("kind::") for word in s.words):
        return multiply_narrow(s)
    d_type, a_type, b_type, rows, k, saturate, bitwise = _product(s)
    if d_type == "f64":
        return _of_f64(s, rows, k)
    pieces, rest = divmod(k * element_bits(a_type), 8 * 16)
    if pieces not in (1, 2) or rest or (rows == 8 and (pieces, d_type) != (1, "s32")):
        s.unknown()
    sums = Sums(d_type, saturate)
    register = {"f32": "f32", "f16": "b32", "s32": "s32"}[d_type]
    count = rows // 4 // (2 if d_type == "f16" else 1)
    left = rows_of_16 if rows == 16 else rows_of_8
    halves = rows // 8

    def compute(active: Array, *registers: Array) -> tuple[Array, ...]:
        a, b, c = _split(registers, pieces * halves, pieces)
        x, y = decoded(left(a), a_type).reshape(-1, rows, k), decoded(rows_of_8(b), b_type).reshape(-1, 8, k)
        z = sums_to_rows(sums.unpack(c), halves).reshape(-1, rows, 8)
        if d_type == "s32":
            total = _of_integers(x, y, bitwise) + z
        elif a_type in NARROW:
            total = multiply_add_as_f16(x, y, z, d_type)
        else:
            total = multiply_add(x, y, z, (a_type, b_type), d_type)
        found = sums.pack(rows_to_sums(total.reshape(-1, 8), halves))
        return tuple(found.reshape(len(found), -1, 32))

    sources = " ".join(["b32"] * (pieces * halves + pieces) + [register] * count)
    return pure("mma", " ".join([register] * count), sources, compute, warp=True)


def _product(s: Spelling) -> tuple[str, str, str, int, int, bool, str]:
    """Return the properties of the product that the opcode specifies.

    The result contains the types of D, A and B, the rows of A, K, whether sums saturate, and the operation on single
    bits.
    """
    for word in ("sync", "aligned", "row", "col"):
        if not s.flag(word):
            s.unknown()
    bitwise = s.choice("and", "xor") if s.flag("popc") else ""
    c_type, b_type, a_type, d_type = (
        s.type("f16", "f32", "f64", "s32", "s8", "u8", "s4", "u4", "b1", "bf16", "tf32", *NARROW) for _ in "cbad"
    )
    saturate = s.flag({"s32": "satfinite", "f64": "rn"}.get(d_type, "")) and d_type == "s32"
    shape = _SHAPE.fullmatch(s.words.pop(0)) if s.words else None
    if not shape or c_type != d_type or not any({a_type, b_type} <= {*pair} for pair in _INPUTS.get(d_type, ())):
        s.unknown()
    if bool(bitwise) != (a_type == "b1"):
        s.unknown()
    return d_type, a_type, b_type, int(shape[1]), int(shape[2]), saturate, bitwise


def _of_integers(x: Array, y: Array, bitwise: str) -> Array:
    """Return the products of rows with rows.

    For single bits, a product is the number of bits that are set in both rows, or in only one of the two rows.
    """
    both = x @ y.swapaxes(1, 2)
    return x.sum(2)[:, :, None] + y.sum(2)[:, None] - 2 * both if bitwise == "xor" else both


def _split(registers: tuple[Array, ...], of_a: int, of_b: int) -> tuple[Array, Array, Array]:
    """Return the registers of A, B and C, each as [register, warps * 32]."""
    flat = [np.asarray(each).reshape(-1) for each in registers]
    return np.stack(flat[:of_a]), np.stack(flat[of_a : of_a + of_b]), np.stack(flat[of_a + of_b :])


def _of_f64(s: Spelling, rows: int, k: int) -> Pure:
    """Return the mma of f64, with `rows` rows of A.

    Register i of A contains row 8 * (i % 2) + lane / 4 (if A has 16 rows) and column lane % 4 + 4 * (i / 2).
    """
    if (rows, k) not in ((8, 4), (16, 4), (16, 8), (16, 16)):
        s.unknown()
    halves, fours = rows // 8, k // 4

    def compute(active: Array, *registers: Array) -> tuple[Array, ...]:
        a, b, c = _split(registers, halves * fours, fours)
        left = a.reshape(fours, halves, -1, 8, 4).transpose(2, 1, 3, 0, 4).reshape(-1, rows, k)
        right = b.reshape(fours, -1, 8, 4).transpose(1, 0, 3, 2).reshape(-1, k, 8)
        total = (left @ right).reshape(-1, 8) + sums_to_rows(c, halves)
        return tuple(rows_to_sums(total, halves).reshape(2 * halves, -1, 32))

    results, sources = (" ".join(["f64"] * count) for count in (2 * halves, halves * fours + fours + 2 * halves))
    return pure("mma", results, sources, compute, warp=True)


@entry("movmatrix")
def transpose(s: Spelling) -> Pure:
    for word in ("sync", "aligned", "m8n8", "trans"):
        if not s.flag(word):
            s.unknown()
    s.type("b16")
    plain, turned = MatrixMove(1, False), MatrixMove(1, True)
    compute: Callable[..., Array] = lambda active, a: turned.to_registers(plain.to_rows(a[None]))[0]  # noqa: E731
    return pure("movmatrix", "b32", "b32", compute, warp=True)
