"""The 128 bytes of a ``CUtensorMap`` as one table of fields, from which both :func:`encode` and :func:`decode` work.

The descriptor is 32 little-endian words of 32 bits. A :class:`Field` says in which bits a parameter is, and how its
value is stored there: less a bias, in a unit, or as a code. Fields of dimensions beyond the rank are zero.

Sources of the table. Words and bits: observed, driver 580, sm_90 (60,000 recorded calls of the three encoders). Codes
of the packed data types and the bits of the swizzle atom: the instructions that ptxas 13.0 emits for
``tensormap.replace`` (``.elemtype``, ``.swizzle_atomicity``), sm_100a and sm_120a; for 16U4_ALIGN16B also a public
bug report (NVIDIA/cutlass, issue 3236). Not verified on hardware.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from operator import attrgetter
from typing import NamedTuple, cast

from .data_type import element_bits
from .errors import TensorMapError
from .params import Im2colParams, Im2colWideParams, Params, TiledParams

__all__ = ["DESCRIPTOR_BYTES", "Field", "Piece", "decode", "encode", "fields", "stored_value"]

DESCRIPTOR_BYTES = 128
MAX_RANK = 5
_WORDS = struct.Struct("<32I")


class Piece(NamedTuple):
    """A run of bits in one 32-bit word: `width` bits from bit `low` (0 is the least significant)."""

    word: int
    low: int
    width: int


@dataclass(frozen=True)
class Field:
    """Where one number is, and how it is stored: ``codes[value]``, or ``(value - bias) / unit``.

    Attributes
    ----------
    name : str
        The parameter, as in :class:`cuda_tma.TiledParams`; or ``im2col``, ``rank``, or the name of a derived number.
    pieces : tuple of Piece
        The stored number's bits, least significant piece first.
    index : int or None
        Which element of an array parameter, in driver order.
    bias, unit : int
        How the value is stored; `unit` is a power of two.
    signed : bool
        Whether the stored number is in two's complement.
    codes : tuple of int
        The stored number of each value, where there is no formula.
    read_by_load : bool
        False for what the driver writes and no load reads.
    """

    name: str
    pieces: tuple[Piece, ...]
    index: int | None = None
    bias: int = 0
    unit: int = 1
    signed: bool = False
    codes: tuple[int, ...] = ()
    read_by_load: bool = True

    @property
    def label(self) -> str:
        """The name with its index: ``global_dim[0]``."""
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    @property
    def byte_offsets(self) -> tuple[int, ...]:
        """The bytes of the descriptor that the field touches.

        >>> Field("oob_fill", (Piece(2, 15, 1),)).byte_offsets
        (9,)
        """
        touched = {4 * w + bit // 8 for w, low, width in self.pieces for bit in range(low, low + width)}
        return tuple(sorted(touched))


# stored element format, bits 0-3; bit 4: round to TFLOAT32. In the order of TensorMapDataType.
_DATA_TYPE_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7 | 16, 8 | 16, 11, 12, 13)
# span (none, 32, 64, 128 bytes), bits 0-1; atom (16, 32, 32 flipped, 64 bytes), bits 2-3; bit 4: a 96-byte span,
# which no TensorMapSwizzle names. In the order of TensorMapSwizzle.
_SWIZZLE_CODES = (0, 1, 2, 3, 3 | 1 << 2, 3 | 2 << 2, 3 | 3 << 2)

IM2COL = Field("im2col", (Piece(2, 0, 1),))
RANK = Field("rank", (Piece(2, 4, 3),), bias=1)

_TENSOR = (
    Field("data_type", (Piece(2, 7, 4), Piece(2, 16, 1)), codes=_DATA_TYPE_CODES),
    Field("global_address", (Piece(0, 0, 32), Piece(1, 0, 32))),
    *(Field("global_dim", (Piece(8 + i, 0, 32),), i, bias=1) for i in range(5)),
    *(Field("global_strides", (Piece(3 + i, 0, 32), Piece(7, 4 * i, 4)), i, unit=16) for i in range(4)),
)
_TRAVERSAL = (
    *(Field("element_strides", (Piece(13, 3 * i, 3),), i, bias=1) for i in range(5)),
    Field("interleave", (Piece(2, 11, 2),), codes=(0, 1, 2)),
    Field("swizzle", (Piece(2, 13, 2), Piece(2, 19, 2), Piece(2, 22, 1)), codes=_SWIZZLE_CODES),
    Field("l2_promotion", (Piece(2, 17, 2),)),
    Field("oob_fill", (Piece(2, 15, 1),)),
)
_BOX = (
    Field("box_dim", (Piece(13, 24, 8),), 0, bias=1),
    *(Field("box_dim", (Piece(14, 8 * i, 8),), i + 1, bias=1) for i in range(4)),
)
_PIXELS = (
    Field("channels_per_pixel", (Piece(13, 24, 8),), bias=1),
    Field("pixels_per_column", (Piece(15, 0, 10),), bias=1),
)
# rank: bits of one corner offset. The lower corner is in the lower half of word 14, the upper one in the upper half.
_CORNER_BITS = {3: 16, 4: 8, 5: 5}


def _corners(rank: int) -> tuple[Field, ...]:
    width = _CORNER_BITS[rank]
    halves = (("pixel_box_lower_corner", 0), ("pixel_box_upper_corner", 16))
    return tuple(
        Field(name, (Piece(14, low + width * i, width),), i, signed=True)
        for name, low in halves
        for i in range(rank - 2)
    )


def _corner_widths(rank: int) -> tuple[Field, ...]:
    """Im2col wide has the W offsets alone: the others stay zero, so that its bytes are those of a plain im2col map."""
    return tuple(Field(f"{f.name}_width", f.pieces, signed=True) for f in _corners(rank) if f.index == 0)


# What the driver computes from the parameters and stores besides them. No load reads either of the two: CuTe DSL 4.8.1
# leaves both zero, and its maps work.
TRANSFER_BYTES = Field("transfer_bytes", (Piece(16, 0, 32),), read_by_load=False)
SWIZZLE_REPEAT_BYTES = Field("swizzle_repeat_bytes", (Piece(18, 0, 32),), read_by_load=False)

# Bits with a known meaning that is no parameter of an encoder: decode leaves them in `unexplained`, diff names them.
BEYOND_PARAMS = (
    Field("bit 1 of word 2", (Piece(2, 1, 1),), read_by_load=False),
    Field("allocation_class", (Piece(2, 21, 1),)),
)

_MIN_RANK = {TiledParams: 1, Im2colParams: 3, Im2colWideParams: 3}


def fields(mode: type[Params], rank: int) -> tuple[Field, ...]:
    """The fields that hold the parameters of a mode and rank, in the order of the driver's arguments.

    Parameters
    ----------
    mode : type
        ``TiledParams``, ``Im2colParams`` or ``Im2colWideParams``.
    rank : int
        1 to 5; 3 to 5 for the im2col modes.

    Raises
    ------
    TensorMapError
        If the mode has no such rank.

    Examples
    --------
    >>> [f.label for f in fields(TiledParams, 1)][:3]
    ['data_type', 'global_address', 'global_dim[0]']
    """
    if mode not in _MIN_RANK:
        raise TensorMapError(f"params must be TiledParams, Im2colParams or Im2colWideParams, not {mode.__name__}")
    if not _MIN_RANK[mode] <= rank <= MAX_RANK:
        raise TensorMapError(
            f"rank {rank} has no place in a tensor map; {mode.__name__} has rank {_MIN_RANK[mode]} to 5"
        )
    if mode is TiledParams:
        shape: tuple[Field, ...] = _BOX
    else:
        shape = (_corners(rank) if mode is Im2colParams else _corner_widths(rank)) + _PIXELS
    count = {"global_strides": rank - 1}
    return tuple(f for f in _TENSOR + shape + _TRAVERSAL if f.index is None or f.index < count.get(f.name, rank))


class _Step(NamedTuple):
    """One field, made ready: the mask and shift of each piece, and where its value stands in the parameters."""

    codes: dict[int, int]
    values: dict[int, int]
    bias: int
    shift: int
    sign: int
    pieces: tuple[tuple[int, int, int, int], ...]  # word, low, mask, bits of the stored number below this piece


def _step(field: Field) -> _Step:
    pieces, below = [], 0
    for word, low, width in field.pieces:
        pieces.append((word, low, (1 << width) - 1, below))
        below += width
    return _Step(
        codes=dict(enumerate(field.codes)),
        values={code: value for value, code in enumerate(field.codes)},
        bias=field.bias,
        shift=field.unit.bit_length() - 1,
        sign=1 << (below - 1) if field.signed else 0,
        pieces=tuple(pieces),
    )


def _mask(some: Iterable[Field]) -> int:
    """The bits of the descriptor, as one number of 1024 bits, that the fields own."""
    return sum(((1 << width) - 1) << (32 * word + low) for f in some for word, low, width in f.pieces)


class _Layout:
    """The table for one mode and rank, arranged for speed: scalars first, then arrays, each with its length."""

    def __init__(self, mode: type[Params], rank: int):
        table = fields(mode, rank)
        scalars = [f for f in table if f.index is None]
        arrays: dict[str, list[Field]] = {}
        for f in table:
            if f.index is not None:
                arrays.setdefault(f.name, []).append(f)
        arrays.setdefault("global_strides", [])
        self.mode = mode
        self.names = [f.name for f in scalars]
        self.lengths = {name: len(array) for name, array in arrays.items()}
        self.get_scalars = attrgetter(*self.names)
        self.get_arrays = attrgetter(*arrays)
        self.steps = [_step(f) for f in (*scalars, *(f for array in arrays.values() for f in array))]
        # word 2 before the other fields are written to it
        self.head = (mode is not TiledParams) | (rank - RANK.bias) << RANK.pieces[0].low
        derived = (IM2COL, RANK, TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES)
        self.unclaimed = ~_mask((*table, *derived)) & ((1 << 8 * DESCRIPTOR_BYTES) - 1)


_layout = cast("Callable[[type, int], _Layout]", cache(_Layout))


# bytes of shared memory after which the pattern repeats: it depends on the span alone
_SWIZZLE_REPEAT_BYTES: dict[int, int] = {
    value: (16, 256, 512, 1024)[code & 3] for value, code in enumerate(_SWIZZLE_CODES)
}


def stored_transfer_bytes(params: Params) -> int:
    """The transfer size that the driver stores (word 16): with element strides it uses floor, where a load uses ceil.

    It is not the number to give to ``expect_tx``. The driver refuses a map where it exceeds 228 KiB.
    """
    if isinstance(params, TiledParams):
        rank = params.rank
        elements = prod([b // e for b, e in zip(params.box_dim[:rank], params.element_strides, strict=False)])
    else:
        pixels = cast("Im2colParams | Im2colWideParams", params)
        elements = pixels.channels_per_pixel * pixels.pixels_per_column
    return elements * element_bits(params.data_type) // 8


def encode(params: Params, compute_capability: tuple[int, int] = (9, 0)) -> bytes:
    """The descriptor of `params`, byte for byte what the driver writes.

    Nothing is checked: :func:`cuda_tma.check` does that. A number too large for its field wraps.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        In driver order. Arrays longer than the rank are cut.
    compute_capability : (int, int)
        The device. The bytes depend on it nowhere that is known; they are verified on 9.0 alone. From 10.0 on the
        allocation class is SMALL (bit 21 of word 2 is clear), and where im2col wide keeps its `mode` is not known.

    Returns
    -------
    bytes
        128 bytes.

    Raises
    ------
    TensorMapError
        If a value has no place in the descriptor: the rank, the data type, the interleave or the swizzle is none of
        the driver's, or an array is too short.

    Examples
    --------
    >>> p = TiledParams(data_type=7, global_address=4096, global_dim=(64, 64), global_strides=(256,),
    ...                 box_dim=(32, 32), element_strides=(1, 1), swizzle=3)
    >>> encode(p)[:12].hex(), decode(encode(p)) == p
    ('001000000000000090630000', True)
    """
    layout = _layout(type(params), len(params.global_dim))
    values = list(layout.get_scalars(params))
    for array, length in zip(layout.get_arrays(params), layout.lengths.values(), strict=True):
        values += array[:length]
    words = [0] * 32
    words[2] = layout.head
    try:
        for value, (codes, _, bias, shift, _, pieces) in zip(values, layout.steps, strict=True):
            stored = codes[value] if codes else (value - bias) >> shift
            for word, low, mask, below in pieces:
                words[word] |= (stored >> below & mask) << low
        words[16] = stored_transfer_bytes(params) & 0xFFFFFFFF
        words[18] = _SWIZZLE_REPEAT_BYTES[params.swizzle]
    except (KeyError, ValueError, ZeroDivisionError):
        raise _unencodable(params) from None
    for word, mask in params.unexplained:
        words[word] ^= mask
    return _WORDS.pack(*words)


def _unencodable(params: Params) -> TensorMapError:
    """Why a value has no place: found only after it failed, to keep the way there short."""
    for field in fields(type(params), params.rank):
        value = getattr(params, field.name)
        if field.index is not None and field.index >= len(value):
            return TensorMapError(f"{field.name}={value!r} has too few values for rank {params.rank}")
        if field.codes and value not in range(len(field.codes)):
            return TensorMapError(
                f"{field.name}={value!r} has no code in a tensor map; choose 0 to {len(field.codes) - 1}"
            )
    return TensorMapError(f"element_strides={params.element_strides!r} has a zero; each must be 1 to 8")


def decode(raw: bytes | bytearray | memoryview) -> Params:
    """The parameters that a descriptor holds.

    Parameters
    ----------
    raw : bytes-like
        128 bytes, made by anybody.

    Returns
    -------
    TiledParams or Im2colParams
        In driver order. What the table cannot explain is in `unexplained`, so that ``encode(decode(raw)) == raw``.
        An im2col wide map comes back as the :class:`Im2colParams` that has the same bytes (corners of zero beyond W):
        its `mode` is nowhere in them (observed: driver 580, sm_90).

    Raises
    ------
    TensorMapError
        If `raw` is not 128 bytes, or holds a rank or a code that the driver does not have.
    """
    try:
        words = _WORDS.unpack(raw)
    except (struct.error, TypeError, ValueError, BufferError):
        size = len(raw) if isinstance(raw, (bytes, bytearray)) else type(raw).__name__
        raise TensorMapError(f"a tensor map is 128 bytes, not {size}; pass the whole CUtensorMap") from None
    head = words[2]
    rank = (head >> RANK.pieces[0].low & 7) + RANK.bias
    layout = _layout(Im2colParams if head & 1 else TiledParams, rank)
    values = []
    for step in layout.steps:
        stored = 0
        for word, low, mask, below in step.pieces:
            stored |= (words[word] >> low & mask) << below
        if step.values:
            values.append(step.values.get(stored))
        else:
            values.append(
                ((stored ^ step.sign) - step.sign << step.shift) + step.bias
            )  # of two's complement where signed
    arguments: dict[str, object] = dict(zip(layout.names, values, strict=False))
    end = len(layout.names)
    for name, length in layout.lengths.items():
        begin, end = end, end + length
        arguments[name] = tuple(values[begin:end])
    if None in values:
        raise _undecodable(arguments)
    params: Params = layout.mode(**arguments)  # type: ignore[arg-type]
    residue = int.from_bytes(raw, "little") & layout.unclaimed
    residue |= (words[16] ^ stored_transfer_bytes(params)) << 32 * 16
    residue |= (words[18] ^ _SWIZZLE_REPEAT_BYTES[params.swizzle]) << 32 * 18
    return replace(params, unexplained=_by_word(residue)) if residue else params


def _undecodable(arguments: dict[str, object]) -> TensorMapError:
    names = ", ".join(name for name, value in arguments.items() if value is None)
    return TensorMapError(
        f"these 128 bytes are no tensor map that the driver makes: their code of {names} stands for nothing"
    )


def stored_value(raw: bytes, field: Field) -> int:
    """The number in the bits of `field`, as it is stored.

    >>> stored_value(bytes(64) + (4096).to_bytes(4, "little") + bytes(60), TRANSFER_BYTES)
    4096
    """
    words = _WORDS.unpack(raw)
    return sum((words[word] >> low & mask) << below for word, low, mask, below in _step(field).pieces)


def _by_word(residue: int) -> tuple[tuple[int, int], ...]:
    masks = _WORDS.unpack(residue.to_bytes(DESCRIPTOR_BYTES, "little"))
    return tuple((word, mask) for word, mask in enumerate(masks) if mask)
