"""The form of a ``tcgen05.mma``, which the kind in its opcode and its 32-bit instruction descriptor determine.

Source: PTX ISA, "Instruction descriptor" and "Matrix Shape".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from .._matrix.padded import PACKED

__all__ = ["Form", "Scales", "form_of", "named"]

_SUMS = {"f16": ("f16", "f32"), "tf32": (None, "f32"), "f8f6f4": ("f16", "f32"), "i8": (None, None, "s32")}
_TYPES = {
    "f16": ("f16", "bf16"),
    "tf32": (None, None, "tf32"),
    "f8f6f4": ("e4m3", "e5m2", None, "e2m3", "e3m2", "e2m1"),
    "i8": ("u8", "s8"),
}
_BYTES = {"f16": 2, "tf32": 4, "f8f6f4": 1, "i8": 1}


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of a product: each is a factor of adjacent elements along K of one row of A or one column of B.

    Attributes
    ----------
    type : str
        ``"ue8m0"`` or ``"ue4m3"``.
    count : int
        The number of scales along the K of one instruction: 1, 2 or 4.
    a_byte, b_byte : int
        The first scale of A and of B in each cell of 4 bytes.
    """

    type: str
    count: int
    a_byte: int
    b_byte: int


@dataclass(frozen=True, slots=True)
class Form:
    """The shape of a product, and the types of its elements.

    Attributes
    ----------
    kind : str
        ``"f16"``, ``"tf32"``, ``"f8f6f4"`` or ``"i8"``; with scales ``"mxf8f6f4"``, ``"mxf4"`` or ``"mxf4nvf4"``.
    m, n : int
        The number of rows and columns that D has in all CTAs together.
    a_type, b_type, sums : str
        The types of A, B and the sums, such as ``"bf16"`` or ``"e4m3"``.
    a_negative, b_negative, saturate : bool
    a_mn_major, b_mn_major : bool
        Whether M or N is innermost in shared memory.
    ctas : int
        The number of CTAs of the product: 1, or 2 with ``.cta_group::2``.
    is_stationary : bool
        Whether the instruction is ``tcgen05.mma.ws``.
    scales : Scales or None
        The scales of ``.block_scale``.
    """

    kind: str
    m: int
    n: int
    a_type: str
    b_type: str
    sums: str
    a_negative: bool
    b_negative: bool
    saturate: bool
    a_mn_major: bool
    b_mn_major: bool
    ctas: int
    is_stationary: bool
    scales: Scales | None = None

    @property
    def element_bytes(self) -> int:
        """Return the bytes of an element of A or B in shared memory.

        A narrower element is padded to 1 byte, except in the kinds ``mxf4`` and ``mxf4nvf4``, whose matrices are
        K-major: two elements are in each byte.
        """
        return _BYTES.get(self.kind, 1)

    @property
    def k(self) -> int:
        """Return the number of elements along K, which together have 32 bytes."""
        return (64 if self.a_type == PACKED else 32) // self.element_bytes


@lru_cache(maxsize=256)
def form_of(kind: str, bits: int, ctas: int, is_stationary: bool) -> Form:
    """Return the form of a product for its kind and its instruction descriptor.

    Raises
    ------
    ValueError
        If the descriptor does not fit the kind.
    NotImplementedError
        If A is sparse.
    """
    if bits >> 2 & 1:
        raise NotImplementedError("a sparse A")
    form = Form(
        kind,
        (bits >> 24 & 31) << 4,
        (bits >> 17 & 63) << 3,
        named(_TYPES[kind], bits >> 7 & 7, "A", kind),
        named(_TYPES[kind], bits >> 10 & 7, "B", kind),
        named(_SUMS[kind], bits >> 4 & 3, "D", kind),
        bool(bits >> 13 & 1),
        bool(bits >> 14 & 1),
        bool(bits >> 3 & 1),
        bool(bits >> 15 & 1),
        bool(bits >> 16 & 1),
        ctas,
        is_stationary,
    )
    _check(form, bits)
    return form


def named(names: tuple[str | None, ...], code: int, matrix: str, kind: str) -> str:
    """Return the type of a code in an instruction descriptor.

    Raises
    ------
    ValueError
        If the kind does not have the type.
    """
    found = names[code] if code < len(names) else None
    if found is None:
        raise ValueError(f"its code {code} for the type of {matrix} is not a type of .kind::{kind}")
    return found


def _columns(form: Form) -> tuple[Collection[int], str]:
    """Return the allowed values of N, as numbers and as text.

    The values of N do not depend on M (PTX ISA 9.2, "Matrix Shape", Table 39; CuTe DSL 4.8.1). Only CUTLASS 4.7 refuses
    an N of 8, 24, 40, ... for M=128 if A is in tensor memory.
    """
    if form.is_stationary:
        return (64, 128, 256), "64, 128 or 256"
    if form.kind == "i8" and form.ctas == 1:
        return (8, 24, *range(16, 257, 16)), "8, 24 or a multiple of 16 up to 256"
    step = (32 if form.kind == "i8" else 16) if form.ctas == 2 else 8
    return range(step, 257, step), f"a multiple of {step} up to 256"


def _check(form: Form, bits: int) -> None:
    rows = (32, 64, 128) if form.is_stationary else (64, 128) if form.ctas == 1 else (128, 256)
    if form.m not in rows:
        raise ValueError(
            f"M is {form.m}, but with .cta_group::{form.ctas} it must be one of {', '.join(map(str, rows))}"
        )
    allowed, words = _columns(form)
    if form.n not in allowed:
        raise ValueError(
            f"N is {form.n}, but for .kind::{form.kind}{'.ws' * form.is_stationary} with .cta_group::{form.ctas} it "
            f"must be {words}"
        )
    if bits >> 6 & 1 or bits >> 23 & 1 or bits >> 29 & 1:
        raise ValueError("one of its reserved bits 6, 23 and 29 is set")
    if form.kind == "i8" and (form.a_negative or form.b_negative):
        raise ValueError("bits 13 and 14 must be 0, because integers cannot be negated")
    if form.sums != "f32" and form.kind == "f16" and "bf16" in (form.a_type, form.b_type):
        raise ValueError("the type of D must be f32, because an operand is bf16")
