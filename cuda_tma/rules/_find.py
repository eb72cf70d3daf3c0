"""The search for violations.

Each rule has one function, which returns the findings in a tensor map.

The functions `within` and `member` make the functions of simple rules. The other functions follow in the order of the
driver's arguments. Most maps are legal, so each function is fast for a legal map.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .._data_type import ELEMENTS, Element
from .._given import shown
from .._limits import CORNER_LIMIT, MAX_BOX_DIM, MAX_RANK, MAX_TRANSFER_BYTES, TMA_EXTENDED_SINCE, TMA_SINCE
from .._swizzle_pattern import PATTERNS, SPAN_BYTES
from ..codec._codec import stored_transfer_bytes
from ..enums import TensorMapDataType as T
from ..enums import TensorMapSwizzle as S
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams

# _UNKNOWN represents a data type that the driver does not define, for which only one rule reports a finding.
_UNKNOWN = Element(bits=0, code=-1)
_FIRST_SWIZZLES = [swizzle for swizzle in S if PATTERNS[swizzle].since == TMA_SINCE]
_WIDE_SWIZZLES = [swizzle for swizzle in S if PATTERNS[swizzle].is_wide]


class Finding(NamedTuple):
    """The result of a rule, with the fields of a :class:`Violation` that are not in the table."""

    at: int | None  # The index of a finding is in driver order.
    value: Any
    requirement: str
    nearest: int | None = None
    fix: str = ""


class TensorMap(NamedTuple):
    """The parameters of a tensor map, with the facts that several rules need."""

    p: Any
    compute_capability: tuple[int, int]
    tiled: bool
    element: Element
    bits: int  # `bits` is the size of an element, or 0 for a data type that the driver does not have.
    align_bytes: int  # The address and the strides are multiples of align_bytes.
    inner: int  # `inner` is the number of elements in one row of the box.

    @property
    def inner_bytes(self) -> int:
        return self.inner * self.bits // 8


def tensor_map(params: Params, compute_capability: tuple[int, int]) -> TensorMap:
    """Return the facts that the rules read. Each fact is computed once."""
    p: Any = params
    tiled = isinstance(p, TiledParams)
    element = ELEMENTS.get(p.data_type, _UNKNOWN)
    inner = p.channels_per_pixel if not tiled else p.box_dim[0] if p.box_dim else 0
    return TensorMap(p, compute_capability, tiled, element, element.bits, element.align_bytes(p.interleave), inner)


Findings = Sequence[Finding]
Find = Callable[[TensorMap], Findings]


def within(parameter: str, low: int, high: int) -> Find:
    """Return a check that a number, or each number of an array, is in ``[low, high]``."""
    get = attrgetter(parameter)
    requirement = f"{low} to {high}"

    def find(m: TensorMap) -> Findings:
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
    """Return a check that a number is one of the given values."""
    get = attrgetter(parameter)

    def find(m: TensorMap) -> Findings:
        value = get(m.p)
        return () if value in values else (Finding(None, value, requirement),)

    return find


def listed(members: Iterable[Any]) -> str:
    return "one of " + ", ".join(f"{int(m)} ({m.short_name})" for m in members)


def ranged(values: Iterable[int]) -> str:
    """Return the range of the values if the range has no gap.

    >>> ranged(S)
    '0 to 6'
    """
    numbers = sorted(map(int, values))
    return f"{numbers[0]} to {numbers[-1]}"


def version(compute_capability: tuple[int, int]) -> str:
    """Return the text of a compute capability, such as ``"10.0"``."""
    return "{}.{}".format(*compute_capability)


def compute_capability(m: TensorMap) -> Findings:
    wide = isinstance(m.p, Im2colWideParams)
    since = TMA_EXTENDED_SINCE if wide else TMA_SINCE
    if m.compute_capability >= since:
        return ()
    return (Finding(None, m.compute_capability, f"{version(since)} or later" + " for im2col wide" * wide),)


def data_type(m: TensorMap) -> Findings:
    if not m.bits:
        return (Finding(None, m.p.data_type, ranged(ELEMENTS)),)
    since = m.element.since
    # If the compute capability has no TMA, another rule reports it.
    if m.compute_capability >= since or since == TMA_SINCE:
        return ()
    earlier = ranged(data_type for data_type, element in ELEMENTS.items() if element.since < since)
    need = f"{earlier} before compute capability {version(since)}"
    return (Finding(None, m.p.data_type, need, fix="Use 0 (UINT8) and count bytes."),)


def rank(m: TensorMap) -> Findings:
    rank = len(m.p.global_dim)
    low = 1 if m.tiled and m.p.interleave not in (1, 2) else 3
    if low <= rank <= MAX_RANK:
        return ()
    why = "" if low == 1 else " with an interleaved layout" if m.tiled else " for im2col"
    return (Finding(None, rank, f"{low} to {MAX_RANK}{why}", low if rank < low else MAX_RANK),)


def lengths(m: TensorMap) -> Findings:
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
        Finding(None, rank, f"matched by {name}, which has length {length} and needs {need}")
        for name, need in needs.items()
        if (length := len(getattr(m.p, name))) != need
    ]


def _aligned(values: Sequence[int], unit: int) -> Findings:
    for v in values:
        if v % unit:
            break
    else:
        return ()
    return [Finding(i, v, f"a multiple of {unit}", -(-v // unit) * unit) for i, v in enumerate(values) if v % unit]


def address_range(m: TensorMap) -> Findings:
    address = m.p.global_address
    if 0 <= address < 1 << 64:
        return ()
    return (Finding(None, address, "0 to less than 2^64", 0 if address < 0 else (1 << 64) - m.align_bytes),)


def address_alignment(m: TensorMap) -> Findings:
    address, unit = m.p.global_address, m.align_bytes
    return () if address % unit == 0 else (Finding(None, address, f"a multiple of {unit}", address // unit * unit),)


def packed_dim(m: TensorMap) -> Findings:
    return _aligned(m.p.global_dim[:1], m.element.dim_multiple)


def stride_alignment(m: TensorMap) -> Findings:
    return _aligned(m.p.global_strides, m.align_bytes)


def stride_range(m: TensorMap) -> Findings:
    strides = m.p.global_strides
    if not strides or (min(strides) >= 0 and max(strides) < 1 << 40):
        return ()
    most = (1 << 40) - m.align_bytes
    wrong = [(i, v) for i, v in enumerate(m.p.global_strides) if not 0 <= v < 1 << 40]
    return [Finding(i, v, "from 0 to less than 2^40", most if v > 0 else None) for i, v in wrong]


def corner(parameter: str) -> Find:
    """Return a check that each offset of a corner fits in the bits for the rank of the map."""
    by_rank = {rank: within(parameter, -limit, limit - 1) for rank, limit in CORNER_LIMIT.items()}

    def find(m: TensorMap) -> Findings:
        fits = by_rank.get(len(m.p.global_dim))
        return fits(m) if fits else ()

    return find


def corner_width(parameter: str) -> Find:
    """Return a check of a corner of an im2col wide map, which has the bits of a corner in a map of rank 3."""
    limit = CORNER_LIMIT[3]
    return within(parameter, -limit, limit - 1)


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def pixel_box(m: TensorMap) -> Findings:
    """Check the pixel box as the driver does.

    The driver adds in 32 bits, and then compares.

    With an interleaved layout, the driver compares W with global_dim[0], and not with global_dim[1].
    """
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
            # The remedy moves the end of the pixel box beyond the lower corner, or back into 32 bits.
            more, less = lower + 1 - end, end + 2**31 + 1
            nearest = upper + more if more <= less else upper - less
            bound = "at least" if more <= less else "at most"
            wrapped = "" if end == extent + upper else ", in 32 bits,"
            where = f"global_dim[{first + i}] {extent} + upper {upper}{wrapped} - lower {lower} is not above 0"
            requirement = f"{bound} {nearest}, or the pixel box is empty ({where})"
            found.append(Finding(i if array else None, upper, requirement, nearest))
    return found


def inner_multiple(m: TensorMap) -> Findings:
    # The rule inner_packed reports the data types that have row_elements.
    if m.inner * m.bits % 128 == 0 or m.element.row_elements:
        return ()
    unit = m.element.chunk_elements
    nearest = min(-(-m.inner // unit) * unit, MAX_BOX_DIM)
    return (Finding(0 if m.tiled else None, m.inner, f"a multiple of {unit}, in whole 16 bytes", nearest),)


def inner_packed(m: TensorMap) -> Findings:
    width = m.element.row_elements
    if width in (None, m.inner):
        return ()
    return (Finding(0 if m.tiled else None, m.inner, f"{width} for {T(m.p.data_type).short_name}", width),)


def inner_span(m: TensorMap) -> Findings:
    span = SPAN_BYTES.get(m.p.swizzle, 0)
    if not span or m.p.interleave or m.inner_bytes <= span or m.element.row_elements:
        return ()
    most = span * 8 // m.bits
    requirement = f"at most {most}: a row is {m.inner_bytes} bytes and the swizzle span {span}"
    return (Finding(0 if m.tiled else None, m.inner, requirement, most),)


def transfer(m: TensorMap) -> Findings:
    if not m.bits or 0 in m.p.element_strides:
        return ()
    size = stored_transfer_bytes(m.p)
    if size <= MAX_TRANSFER_BYTES:
        return ()
    value = m.p.box_dim if m.tiled else m.p.pixels_per_column
    fix = "Shrink the box." if m.tiled else "Take fewer pixels or channels."
    return (Finding(None, value, f"at most {MAX_TRANSFER_BYTES} bytes in one load (it is {shown(size)})", fix=fix),)


def packed_interleave(m: TensorMap) -> Findings:
    if m.element.can_interleave or not m.p.interleave:
        return ()
    return (Finding(None, m.p.interleave, f"0 (NONE) for {T(m.p.data_type).short_name}", 0),)


def swizzle(m: TensorMap) -> Findings:
    value = m.p.swizzle
    if value in _FIRST_SWIZZLES:
        return ()
    if m.compute_capability < TMA_EXTENDED_SINCE:
        need = f"{ranged(_FIRST_SWIZZLES)} before compute capability {version(TMA_EXTENDED_SINCE)}"
        return (Finding(None, value, need),)
    return () if value in PATTERNS else (Finding(None, value, ranged(S)),)


def wide_swizzle(m: TensorMap) -> Findings:
    if m.p.swizzle in _WIDE_SWIZZLES or m.p.swizzle not in PATTERNS:
        return ()
    return (Finding(None, m.p.swizzle, f"{listed(_WIDE_SWIZZLES)} for im2col wide"),)


def packed_swizzle(m: TensorMap) -> Findings:
    wide = isinstance(m.p, Im2colWideParams)
    legal = m.element.wide_swizzles if wide else m.element.swizzles
    if legal is None or m.p.swizzle in legal:
        return ()
    # Another rule reports a swizzle that is illegal for every data type.
    if m.p.swizzle not in (_WIDE_SWIZZLES if wide else PATTERNS):
        return ()
    return (Finding(None, m.p.swizzle, f"{listed(legal)} for {T(m.p.data_type).short_name}"),)


def nan_fill(m: TensorMap) -> Findings:
    if m.p.oob_fill == 1 and m.bits and not m.element.is_floating:
        return (Finding(None, 1, "0 (NONE) unless the data type is a floating-point one", 0),)
    return ()
