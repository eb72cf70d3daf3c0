"""The form of a ``tcgen05.mma`` with block scales: its kind, its number of scales and its instruction descriptor.

The sources are PTX ISA, "Instruction descriptor" (the tables of ``.kind::mxf8f6f4``, ``.kind::mxf4`` and
``.kind::mxf4nvf4``), "Block Scaling", and "Scale factor data ID".
"""

from __future__ import annotations

from functools import lru_cache

from .._matrix.padded import PACKED
from .._matrix.scaled import scale_bytes
from .form import Form, Scales, named

__all__ = ["scaled_form_of"]

_NARROW = ("e4m3", "e5m2", None, "e2m3", "e3m2", "e2m1")
_FOUR_BITS = (None, PACKED)
_TYPES = {"mxf8f6f4": _NARROW, "mxf4": _FOUR_BITS, "mxf4nvf4": _FOUR_BITS}


@lru_cache(maxsize=256)
def scaled_form_of(kind: str, count: int, bits: int, ctas: int) -> Form:
    """Return the form of a product from its kind, its number of scales along K and its instruction descriptor.

    Raises
    ------
    ValueError
        If the descriptor does not fit the kind.
    NotImplementedError
        If A is sparse, or K is 96.
    """
    if bits >> 2 & 1:
        raise NotImplementedError("a sparse A")
    if bits >> 31 & 1:
        raise NotImplementedError("K of 96 elements")
    form = Form(
        kind,
        (bits >> 24 & 31) << 4,
        (bits >> 17 & 63) << 3,
        named(_TYPES[kind], bits >> 7 & 7, "A", kind),
        named(_TYPES[kind], bits >> 10 & 7, "B", kind),
        "f32",
        bool(bits >> 13 & 1),
        bool(bits >> 14 & 1),
        False,
        bool(bits >> 15 & 1),
        bool(bits >> 16 & 1),
        ctas,
        False,
        _scales(kind, count, bits),
    )
    _check(form, bits)
    return form


def _scales(kind: str, count: int, bits: int) -> Scales:
    """Return the scales that a descriptor describes."""
    scales = Scales("ue8m0" if bits >> 23 & 1 else "ue4m3", count, bits >> 29 & 3, bits >> 4 & 3)
    if scales.type == "ue4m3" and (kind, count) != ("mxf4nvf4", 4):
        raise ValueError(
            f"bit 23 is 0, which selects scales of ue4m3, but .kind::{kind} with {count} scales along K has scales of "
            "ue8m0; set the bit"
        )
    for matrix, byte in (("A", scales.a_byte), ("B", scales.b_byte)):
        if byte not in scale_bytes(count):
            allowed = " or ".join(map(str, scale_bytes(count)))
            raise ValueError(
                f"the scale factor data ID of {matrix} is {byte}, but with {count} scales along K it must be {allowed}"
                ", because all of them are in one cell of 4 bytes"
            )
    return scales


def _check(form: Form, bits: int) -> None:
    """Raise an error if the shape or the reserved bits of a descriptor are invalid."""
    rows = (128,) if form.ctas == 1 else (128, 256)
    if form.m not in rows:
        allowed = " or ".join(map(str, rows))
        raise ValueError(f"M is {form.m}, but with .block_scale and .cta_group::{form.ctas} it must be {allowed}")
    step = 8 * form.ctas
    if form.n not in range(step, 257, step):
        raise ValueError(
            f"N is {form.n}, but with .cta_group::{form.ctas} it must be a multiple of {step} from {step} to 256"
        )
    if bits & 0b11 or bits >> 3 & 1 or bits >> 6 & 1:
        raise ValueError("one of its reserved bits 0, 1, 3 and 6 is set; bits 4 and 5 are the ID of the scales of B")
    for matrix, type_, mn_major in (("A", form.a_type, form.a_mn_major), ("B", form.b_type, form.b_mn_major)):
        if mn_major and type_ not in ("e4m3", "e5m2"):
            raise ValueError(f"{matrix} of {type_} must be K-major; clear bit {15 if matrix == 'A' else 16}")
