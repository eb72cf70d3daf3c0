"""How each rule looks for what breaks it: a function from a tensor map to findings; :mod:`cuda_tma.rules` is the table.

`within` and `member` make the plain ones; the others follow in the order of the driver's arguments. Each finds nothing
in a legal map at little cost, since a legal map is the common case.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .._given import shown
from ..codec import stored_transfer_bytes
from ..data_type import element_bits, is_floating
from ..enums import TensorMapDataType as T
from ..enums import TensorMapSwizzle as S
from ..limits import CORNER_LIMIT, MAX_BOX_DIM, MAX_RANK, MAX_TRANSFER_BYTES, SPAN_BYTES
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams

_LAST_DATA_TYPE, _LAST_SWIZZLE = int(max(T)), int(max(S))
_DIM_UNIT = {T.PACKED_16U4_ALIGN8B: 2, T.PACKED_16U4_ALIGN16B: 128, T.PACKED_16U6_ALIGN16B: 128}
_ALIGN16B = (T.PACKED_16U4_ALIGN16B, T.PACKED_16U6_ALIGN16B)
_PACKED_SWIZZLES = {
    T.PACKED_16U4_ALIGN16B: (S.NONE, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
    T.PACKED_16U6_ALIGN16B: (S.NONE, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B, S.SWIZZLE_128B_ATOM_64B),
}
_PACKED_WIDE_SWIZZLES = {
    T.PACKED_16U4_ALIGN16B: (S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
    T.PACKED_16U6_ALIGN16B: (S.SWIZZLE_64B, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
}
_WIDE_SWIZZLES = (S.SWIZZLE_64B, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B)


class Finding(NamedTuple):
    """What a rule found: the fields of a :class:`Violation` that the table does not know."""

    at: int | None  # the index in driver order
    value: Any
    requirement: str
    nearest: int | None = None
    fix: str = ""


class TensorMap(NamedTuple):
    """Parameters, with the facts that more than one rule needs."""

    p: Any
    compute_capability: tuple[int, int]
    tiled: bool
    bits: int  # of one element; 0 if the data type is none of the driver's
    align_bytes: int  # of the address and the strides
    inner: int  # elements in one row of the box

    @property
    def inner_bytes(self) -> int:
        return self.inner * self.bits // 8


def tensor_map(params: Params, compute_capability: tuple[int, int]) -> TensorMap:
    """What the rules read, put together once."""
    p: Any = params
    tiled = isinstance(p, TiledParams)
    bits = element_bits(p.data_type) if 0 <= p.data_type <= _LAST_DATA_TYPE else 0
    align_bytes = 32 if p.interleave == 2 or p.data_type in _ALIGN16B else 16
    inner = p.channels_per_pixel if not tiled else p.box_dim[0] if p.box_dim else 0
    return TensorMap(p, compute_capability, tiled, bits, align_bytes, inner)


Found = Sequence[Finding]
Find = Callable[[TensorMap], Found]


def within(parameter: str, low: int, high: int) -> Find:
    """A number, or each of an array, is in ``[low, high]``."""
    get = attrgetter(parameter)
    requirement = f"{low} to {high}"

    def find(m: TensorMap) -> Found:
        value = get(m.p)
        values = value if isinstance(value, tuple) else (value,)
        if not values or (low <= min(values) and max(values) <= high):
            return ()
        array = value is values
        return [
            Finding(i if array else None, v, requirement, low if v < low else high)
            for i, v in enumerate(values)
            if not low <= v <= high
        ]

    return find


def member(parameter: str, values: Container[int], requirement: str) -> Find:
    """A number is one of `values`."""
    get = attrgetter(parameter)

    def find(m: TensorMap) -> Found:
        value = get(m.p)
        return () if value in values else (Finding(None, value, requirement),)

    return find


def listed(members: Iterable[Any]) -> str:
    return "one of " + ", ".join(f"{int(m)} ({m.short_name})" for m in members)


def compute_capability(m: TensorMap) -> Found:
    wide = isinstance(m.p, Im2colWideParams)
    if m.compute_capability < ((10, 0) if wide else (9, 0)):
        need = "10.0 or later for im2col wide" if wide else "9.0 or later"
        return (Finding(None, m.compute_capability, need),)
    return ()


def data_type(m: TensorMap) -> Found:
    if not m.bits:
        return (Finding(None, m.p.data_type, f"0 to {_LAST_DATA_TYPE}"),)
    if m.p.data_type > T.TFLOAT32_FTZ and m.compute_capability < (10, 0):
        fix = "Use 0 (UINT8) and count bytes."
        return (Finding(None, m.p.data_type, "0 to 12 before compute capability 10.0", fix=fix),)
    return ()


def rank(m: TensorMap) -> Found:
    rank = len(m.p.global_dim)
    low = 1 if m.tiled and m.p.interleave not in (1, 2) else 3
    if low <= rank <= MAX_RANK:
        return ()
    why = "" if low == 1 else " with an interleaved layout" if m.tiled else " for im2col"
    return (Finding(None, rank, f"{low} to {MAX_RANK}{why}", low if rank < low else MAX_RANK),)


def lengths(m: TensorMap) -> Found:
    rank = len(m.p.global_dim)
    if m.tiled and len(m.p.box_dim) == len(m.p.element_strides) == rank == len(m.p.global_strides) + 1:
        return ()
    corners = ("pixel_box_lower_corner", "pixel_box_upper_corner") if isinstance(m.p, Im2colParams) else ()
    needs = {
        "global_strides": max(rank - 1, 0),
        **({"box_dim": rank} if m.tiled else {}),
        "element_strides": rank,
        **dict.fromkeys(corners, max(rank - 2, 0)),
    }
    return [
        Finding(None, rank, f"matched by {name}, which has {length} values and needs {need}")
        for name, need in needs.items()
        if (length := len(getattr(m.p, name))) != need
    ]


def _aligned(values: Sequence[int], unit: int) -> Found:
    for v in values:
        if v % unit:
            break
    else:
        return ()
    return [Finding(i, v, f"a multiple of {unit}", -(-v // unit) * unit) for i, v in enumerate(values) if v % unit]


def address_range(m: TensorMap) -> Found:
    address = m.p.global_address
    if 0 <= address < 1 << 64:
        return ()
    return (Finding(None, address, "0 to less than 2^64", 0 if address < 0 else (1 << 64) - m.align_bytes),)


def address_alignment(m: TensorMap) -> Found:
    address, unit = m.p.global_address, m.align_bytes
    return () if address % unit == 0 else (Finding(None, address, f"a multiple of {unit}", address // unit * unit),)


def packed_dim(m: TensorMap) -> Found:
    return _aligned(m.p.global_dim[:1], _DIM_UNIT.get(m.p.data_type, 1))


def stride_alignment(m: TensorMap) -> Found:
    return _aligned(m.p.global_strides, m.align_bytes)


def stride_range(m: TensorMap) -> Found:
    strides = m.p.global_strides
    if not strides or (min(strides) >= 0 and max(strides) < 1 << 40):
        return ()
    most = (1 << 40) - m.align_bytes
    wrong = [(i, v) for i, v in enumerate(m.p.global_strides) if not 0 <= v < 1 << 40]
    return [Finding(i, v, "from 0 to less than 2^40", most if v > 0 else None) for i, v in wrong]


def corner(parameter: str) -> Find:
    """Each offset fits in the bits that the rank leaves it."""
    by_rank = {rank: within(parameter, -limit, limit - 1) for rank, limit in CORNER_LIMIT.items()}

    def find(m: TensorMap) -> Found:
        fits = by_rank.get(len(m.p.global_dim))
        return fits(m) if fits else ()

    return find


def corner_width(parameter: str) -> Find:
    """An offset of im2col wide has the bits of the one that a map of rank 3 has."""
    limit = CORNER_LIMIT[3]
    return within(parameter, -limit, limit - 1)


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def pixel_box(m: TensorMap) -> Found:
    """The driver adds in 32 bits, then compares; with an interleaved layout it pairs W with global_dim[0], not [1]."""
    array = isinstance(m.p, Im2colParams)
    if array:
        corners = list(zip(m.p.pixel_box_lower_corner, m.p.pixel_box_upper_corner, strict=False))
    else:
        corners = [(m.p.pixel_box_lower_corner_width, m.p.pixel_box_upper_corner_width)]
    first = 0 if m.p.interleave else 1
    found = []
    for i, ((lower, upper), extent) in enumerate(zip(corners, m.p.global_dim[first:], strict=False)):
        end = _int32(extent + upper)
        if 1 <= extent <= 2**32 and end <= lower:
            more, less = lower + 1 - end, end + 2**31 + 1  # to reach past lower, or back to where 32 bits hold the sum
            nearest = upper + more if more <= less else upper - less
            bound = "at least" if more <= less else "at most"
            wrapped = "" if end == extent + upper else ", in 32 bits,"
            where = f"global_dim[{first + i}] {extent} + upper {upper}{wrapped} - lower {lower} is not above 0"
            requirement = f"{bound} {nearest}, or the pixel box is empty ({where})"
            found.append(Finding(i if array else None, upper, requirement, nearest))
    return found


def inner_multiple(m: TensorMap) -> Found:
    if m.inner * m.bits % 128 == 0 or m.p.data_type in _ALIGN16B:  # for those, inner_packed says it all
        return ()
    unit = 128 // m.bits
    nearest = min(-(-m.inner // unit) * unit, MAX_BOX_DIM)
    return (Finding(0 if m.tiled else None, m.inner, f"a multiple of {unit}, in whole 16 bytes", nearest),)


def inner_packed(m: TensorMap) -> Found:
    if m.p.data_type in _ALIGN16B and m.inner != 128:
        return (Finding(0 if m.tiled else None, m.inner, f"128 for {T(m.p.data_type).short_name}", 128),)
    return ()


def inner_span(m: TensorMap) -> Found:
    span = SPAN_BYTES.get(m.p.swizzle, 0)
    if not span or m.p.interleave or m.inner_bytes <= span or m.p.data_type in _ALIGN16B:
        return ()
    most = span * 8 // m.bits
    requirement = f"at most {most}: a row is {m.inner_bytes} bytes and the swizzle span {span}"
    return (Finding(0 if m.tiled else None, m.inner, requirement, most),)


def transfer(m: TensorMap) -> Found:
    if not m.bits or 0 in m.p.element_strides:
        return ()
    size = stored_transfer_bytes(m.p)
    if size <= MAX_TRANSFER_BYTES:
        return ()
    value = m.p.box_dim if m.tiled else m.p.pixels_per_column
    fix = "Shrink the box." if m.tiled else "Take fewer pixels or channels."
    return (Finding(None, value, f"at most {MAX_TRANSFER_BYTES} bytes in one load (it is {shown(size)})", fix=fix),)


def packed_interleave(m: TensorMap) -> Found:
    if m.p.data_type == T.PACKED_16U6_ALIGN16B and m.p.interleave:
        return (Finding(None, m.p.interleave, "0 (NONE) for 16U6_ALIGN16B", 0),)
    return ()


def swizzle(m: TensorMap) -> Found:
    value = m.p.swizzle
    if 0 <= value <= S.SWIZZLE_128B:
        return ()
    if m.compute_capability < (10, 0):
        return (Finding(None, value, f"0 to {int(S.SWIZZLE_128B)} before compute capability 10.0"),)
    return () if 0 <= value <= _LAST_SWIZZLE else (Finding(None, value, f"0 to {_LAST_SWIZZLE}"),)


def wide_swizzle(m: TensorMap) -> Found:
    if m.p.swizzle in _WIDE_SWIZZLES or not 0 <= m.p.swizzle <= _LAST_SWIZZLE:
        return ()
    return (Finding(None, m.p.swizzle, f"{listed(_WIDE_SWIZZLES)} for im2col wide"),)


def packed_swizzle(m: TensorMap) -> Found:
    table = _PACKED_WIDE_SWIZZLES if isinstance(m.p, Im2colWideParams) else _PACKED_SWIZZLES
    legal = table.get(m.p.data_type)
    if legal is None or m.p.swizzle in legal:
        return ()
    known = _WIDE_SWIZZLES if table is _PACKED_WIDE_SWIZZLES else range(_LAST_SWIZZLE + 1)
    if m.p.swizzle not in known:  # which the rule of all data types says
        return ()
    return (Finding(None, m.p.swizzle, f"{listed(legal)} for {T(m.p.data_type).short_name}"),)


def nan_fill(m: TensorMap) -> Found:
    if m.p.oob_fill == 1 and m.bits and not is_floating(m.p.data_type):
        return (Finding(None, 1, "0 (NONE) unless the data type is a floating-point one", 0),)
    return ()
