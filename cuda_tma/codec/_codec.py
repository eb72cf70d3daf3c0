"""The conversion of parameters to 128 bytes and back, by :func:`encode`, :func:`decode` and the table in ``_fields``.

60,000 recorded calls of the driver's three encoders confirm both conversions (driver 580, sm_90).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import prod
from operator import attrgetter
from typing import NamedTuple, cast

from .._data_type import element_bits
from .._errors import TensorMapError
from .._given import shown
from .._limits import DESCRIPTOR_BYTES
from .._params_checks import check_params
from .._swizzle_pattern import PATTERNS, SPAN_BYTES
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams
from ._fields import IM2COL, RANK, SWIZZLE_REPEAT_BYTES, TRANSFER_BYTES, Field, fields

__all__ = ["decode", "encode", "stored_value", "with_value"]

_WORDS = struct.Struct("<32I")
_WORD = 0xFFFFFFFF


class _Step(NamedTuple):
    """A field in a fast form: the mask and shift of each piece, and the position of the value in the parameters."""

    codes: dict[int, int]
    values: dict[int, int]
    bias: int
    shift: int
    sign: int
    # A piece of a field is a tuple of its word, its lowest bit, its mask, and the number of less significant bits in
    # other pieces.
    pieces: tuple[tuple[int, int, int, int], ...]


def _step(field: Field) -> _Step:
    pieces, below = [], 0
    for word, low, width in field.pieces:
        pieces.append((word, low, (1 << width) - 1, below))
        below += width
    return _Step(
        codes={value: code for value, code in enumerate(field.codes) if code is not None},
        values={code: value for value, code in enumerate(field.codes) if code is not None},
        bias=field.bias,
        shift=field.unit.bit_length() - 1,
        sign=1 << (below - 1) if field.signed else 0,
        pieces=tuple(pieces),
    )


class _Layout:
    """The table of fields for one mode and rank, in a form that is fast to use.

    Scalars precede arrays, and each array has its length.
    """

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
        # `head` contains the bits of word 2 that are equal in all maps of a mode and rank.
        self.head = (not issubclass(mode, TiledParams)) | (rank - RANK.bias) << RANK.pieces[0].low
        derived = (IM2COL, RANK, TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES)
        self.unclaimed = ~sum(f.mask for f in (*table, *derived)) & ((1 << 8 * DESCRIPTOR_BYTES) - 1)


_layout = cast("Callable[[type, int], _Layout]", cache(_Layout))


# A map contains the number of bytes after which the pattern of its swizzle repeats, which depends only on the span.
_SWIZZLE_REPEAT_BYTES = {swizzle: 8 * SPAN_BYTES.get(swizzle, 2) for swizzle in PATTERNS}


def stored_transfer_bytes(params: Params) -> int:
    """Return the transfer size that the driver stores in word 16.

    The stored size differs from the number for ``expect_tx``: division by an element stride rounds down in this field,
    but rounds up in a load. The driver refuses a map whose size exceeds 228 KiB.
    """
    if isinstance(params, TiledParams):
        rank = params.rank
        elements = prod([b // e for b, e in zip(params.box_dim[:rank], params.element_strides, strict=False)])
    else:
        pixels = cast("Im2colParams | Im2colWideParams", params)
        elements = pixels.channels_per_pixel * pixels.pixels_per_column
    return elements * element_bits(params.data_type) // 8


def encode(params: Params, compute_capability: tuple[int, int] = (9, 0)) -> bytes:
    """Return the descriptor of `params`, byte for byte as the driver encodes it.

    The function does not check the values; call :func:`cuda_tma.check` for that. A number that is too large for its
    field wraps around.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The parameters in driver order. Arrays longer than the rank are cut.
    compute_capability : (int, int)
        The device of the map. No byte is known to depend on the device, and the bytes are verified only on 9.0. From
        10.0 on, two places in an im2col wide map are unknown: the place of its `mode`, and the place of corners of rank
        4 and 5 for which a plain im2col map has no room.

    Returns
    -------
    bytes
        The 128 bytes of the descriptor.

    Raises
    ------
    TensorMapError
        If a value is not an integer, or an array is too short. Also if the driver does not have the rank or the enum
        value, or if the value is AUTO.

    Examples
    --------
    >>> p = TiledParams(data_type=7, global_address=4096, global_dim=(64, 64), global_strides=(256,),
    ...                 box_dim=(32, 32), element_strides=(1, 1), swizzle=3)
    >>> encode(p)[:12].hex(), decode(encode(p)) == p
    ('001000000000000090630000', True)
    """
    check_params(params)
    try:
        layout = _layout(type(params), len(params.global_dim))
        values = list(layout.get_scalars(params))
        for array, length in zip(layout.get_arrays(params), layout.lengths.values(), strict=True):
            values += array[:length]
        words = [0] * 32
        words[2] = layout.head
        for value, (codes, _, bias, shift, _, pieces) in zip(values, layout.steps, strict=True):
            stored = codes[value] if codes else (value - bias) >> shift
            for word, low, mask, below in pieces:
                words[word] |= (stored >> below & mask) << low
        words[16] = stored_transfer_bytes(params) & _WORD
        words[18] = _SWIZZLE_REPEAT_BYTES[params.swizzle]
    except (KeyError, ValueError, ZeroDivisionError):
        raise _unencodable(params) from None
    for word, mask in params.unexplained:
        words[word] ^= mask
    return _WORDS.pack(*words)


def _unencodable(params: Params) -> TensorMapError:
    """Return the error for a value that cannot be encoded.

    The function is slow, and runs only after encoding has failed.
    """
    for field in fields(type(params), params.rank):
        value = getattr(params, field.name)
        if field.index is not None and field.index >= len(value):
            return TensorMapError(f"{field.name}={shown(value)} has too few values for rank {params.rank}")
        legal = [v for v, code in enumerate(field.codes) if code is not None]
        if legal and value not in legal:
            return TensorMapError(
                f"{field.name}={shown(value)} cannot be encoded in a tensor map; choose {legal[0]} to {legal[-1]}"
            )
    return TensorMapError(f"element_strides={shown(params.element_strides)} has a zero; each must be 1 to 8")


def decode(raw: bytes | bytearray | memoryview) -> Params:
    """Return the parameters that a descriptor contains.

    Parameters
    ----------
    raw : bytes-like
        The 128 bytes of a descriptor from any source.

    Returns
    -------
    TiledParams or Im2colParams
        The parameters in driver order. `unexplained` contains the bits that the table cannot explain, so that
        ``encode(decode(raw)) == raw``. For an im2col wide map, the result is the :class:`Im2colParams` with the same
        bytes (its corners beyond W are zero).

    Raises
    ------
    TensorMapError
        If `raw` does not have 128 bytes, or contains a rank or a code that the driver does not use.
    """
    try:
        words = _WORDS.unpack(raw)
    except (struct.error, TypeError, ValueError, BufferError):
        given = len(raw) if isinstance(raw, bytes | bytearray) else shown(raw)
        raise TensorMapError(
            f"a tensor map has 128 bytes, not {given}; pass all bytes of the CUtensorMap at once"
        ) from None
    head = words[2]
    rank = (head >> RANK.pieces[0].low & 7) + RANK.bias
    layout = _layout(Im2colParams if head & 1 else TiledParams, rank)
    values = []
    for _, meanings, bias, shift, sign, pieces in layout.steps:
        stored = 0
        for word, low, mask, below in pieces:
            stored |= (words[word] >> low & mask) << below
        if meanings:
            values.append(meanings.get(stored))
        else:
            # The map contains signed numbers in two's complement.
            values.append((((stored ^ sign) - sign) << shift) + bias)
    arguments: dict[str, object] = dict(zip(layout.names, values, strict=False))
    end = len(layout.names)
    for name, length in layout.lengths.items():
        begin, end = end, end + length
        arguments[name] = tuple(values[begin:end])
    if None in values:
        raise _undecodable(arguments)
    params: Params = layout.mode(**arguments)  # type: ignore[arg-type]
    residue = int.from_bytes(raw, "little") & layout.unclaimed
    residue |= (words[16] ^ stored_transfer_bytes(params) & _WORD) << 32 * 16
    residue |= (words[18] ^ _SWIZZLE_REPEAT_BYTES[params.swizzle]) << 32 * 18
    return replace(params, unexplained=_by_word(residue)) if residue else params


def _undecodable(arguments: dict[str, object]) -> TensorMapError:
    names = ", ".join(name for name, value in arguments.items() if value is None)
    return TensorMapError(f"these 128 bytes are not a tensor map of the driver: their code of {names} has no meaning")


def stored_value(raw: bytes, field: Field) -> int:
    """Return the stored number in the bits of `field`.

    >>> stored_value(bytes(64) + (4096).to_bytes(4, "little") + bytes(60), TRANSFER_BYTES)
    4096
    """
    words = _WORDS.unpack(raw)
    return sum((words[word] >> low & mask) << below for word, low, mask, below in _step(field).pieces)


def with_value(raw: bytes, field: Field, value: int) -> bytes:
    """Return a descriptor with one field set to a value and all other bits unchanged.

    A number that is too large for its field wraps around, as in :func:`encode`.

    Raises
    ------
    TensorMapError
        If the field contains codes, and the value has no code.

    Examples
    --------
    >>> stored_value(with_value(bytes(128), TRANSFER_BYTES, 4096), TRANSFER_BYTES)
    4096
    """
    codes, _, bias, shift, _, pieces = _step(field)
    if codes and value not in codes:
        raise TensorMapError(
            f"{field.name}={value} cannot be encoded in a tensor map; choose {min(codes)} to {max(codes)}"
        )
    stored = codes[value] if codes else (value - bias) >> shift
    words = [*_WORDS.unpack(raw)]
    for word, low, mask, below in pieces:
        words[word] = words[word] & ~(mask << low) | (stored >> below & mask) << low
    return _WORDS.pack(*words)


def _by_word(residue: int) -> tuple[tuple[int, int], ...]:
    masks = _WORDS.unpack(residue.to_bytes(DESCRIPTOR_BYTES, "little"))
    return tuple((word, mask) for word, mask in enumerate(masks) if mask)
