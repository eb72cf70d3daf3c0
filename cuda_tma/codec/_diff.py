"""The differences of two tensor maps: each field with both values, its bytes, and the effect on a load.

The functions compare the bytes by the table in ``_fields``. The functions therefore also find differences that no
parameter explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._enum_members import PARAMETER_ENUMS
from .._errors import TensorMapError
from .._given import shown
from .._limits import DESCRIPTOR_BYTES, MAX_RANK
from ..params import Im2colParams, Params, TiledParams
from ._codec import decode, encode, stored_value
from ._fields import (
    BEYOND_PARAMS,
    IM2COL,
    MEANINGS,
    RANK,
    SWIZZLE_REPEAT_BYTES,
    TRANSFER_BYTES,
    Field,
    Piece,
    fields,
)

__all__ = ["FieldDifference", "diff", "field_words"]


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field in which two tensor maps differ.

    Attributes
    ----------
    field : str
        The driver's parameter with its index in driver order, such as ``"global_strides[1]"``, or the name of other
        bits.
    a, b : str
        The values of both maps as text. A value is ``"absent"`` if the map's rank or mode has no such field.
    byte_offsets : tuple of int
        The bytes of the field that differ between the maps.
    meaning : str
        The effect of the difference on a load.
    read_by_load : bool
        False for a field that no load reads.
    """

    field: str
    a: str
    b: str
    byte_offsets: tuple[int, ...]
    meaning: str
    read_by_load: bool = True

    def __str__(self) -> str:
        where = ", ".join(map(str, self.byte_offsets))
        byte = "byte" if len(self.byte_offsets) == 1 else "bytes"
        return f"{self.field}: {self.a} against {self.b} ({byte} {where}): {self.meaning}"


def diff(a: Any, b: Any, *, stored: bool = False) -> tuple[FieldDifference, ...]:
    r"""Return the fields in which two tensor maps differ, in the order of the driver's arguments.

    Parameters
    ----------
    a, b : params, bytes-like, or an object with ``__bytes__``
        The maps to compare. Descriptors may come from any source.
    stored : bool
        Whether to compare the stored numbers, which also works for 128 bytes that are not a map. The first map then
        determines the mode of the fields.

    Returns
    -------
    tuple of FieldDifference
        The differences, or an empty tuple if the 128 bytes are equal.

    Raises
    ------
    TensorMapError
        If one of the arguments is not a tensor map. With `stored`, if one of them does not have 128 bytes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from cuda_tma.params import TiledParams
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(64, 64), global_strides=(256,), box_dim=(32, 32),
    ...                 element_strides=(1, 1), swizzle=3)
    >>> for d in diff(p, replace(p, swizzle=0)):
    ...     print(d.field, "|", d.a, "|", d.b, "|", d.byte_offsets, "|", d.read_by_load)
    swizzle | 128B | NONE | (9,) | True
    swizzle_repeat_bytes | 1024 | 16 | (72, 73) | False
    >>> [(d.field, d.a, d.b) for d in diff(bytes(128), bytes(8) + b"\x70" + bytes(119), stored=True)]
    [('rank', '0', '7')]
    """
    left, right = _bytes("a", a), _bytes("b", b)
    if stored:
        return _diff_stored(left, right)
    maps = _Pair(left, right, decode(left), decode(right))
    found = {field: difference for field in maps.table() if (difference := maps.compare(field))}
    return (*found.values(), *_unknown(left, right, maps.delta, found))


def _diff_stored(a: bytes, b: bytes) -> tuple[FieldDifference, ...]:
    """Return the fields whose stored numbers differ."""
    delta = _delta(a, b)
    found = {f: _bytes_in(delta & f.mask) for f in (IM2COL, RANK, *_stored_table(a), *_DERIVED) if delta & f.mask}
    differences = [
        FieldDifference(f.label, str(stored_value(a, f)), str(stored_value(b, f)), offsets, _meaning(f), f.read_by_load)
        for f, offsets in found.items()
    ]
    return (*differences, *_unknown(a, b, delta, found))


def _stored_table(raw: bytes) -> tuple[Field, ...]:
    """Return the fields of the bytes' mode and rank.

    If the mode does not have this rank, return the fields of the mode's highest rank.
    """
    rank = stored_value(raw, RANK) + RANK.bias
    if stored_value(raw, IM2COL):
        return fields(Im2colParams, rank if 3 <= rank <= MAX_RANK else MAX_RANK)
    return fields(TiledParams, MAX_RANK)


_DERIVED = (TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES, *BEYOND_PARAMS)
# The types in _NEVER_BYTES are refused first, because bytes() accepts some objects of these types.
_NEVER_BYTES = (int, str, list, tuple)


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, Params):
        return encode(value)
    try:
        raw = b"" if isinstance(value, _NEVER_BYTES) else bytes(value)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != DESCRIPTOR_BYTES:
        raise TensorMapError(f"{name} is {shown(value)}; pass the 128 bytes of a tensor map, params or a descriptor")
    return raw


@dataclass(frozen=True)
class _Pair:
    """Two tensor maps, as bytes and as params."""

    left: bytes
    right: bytes
    p: Params
    q: Params

    @cached_property
    def delta(self) -> int:
        return _delta(self.left, self.right)

    def table(self) -> list[Field]:
        """Return the fields of the left map, followed by the fields that only the right map has."""
        table = [IM2COL, RANK, *_full_table(self.p)]
        table += [f for f in _full_table(self.q) if f not in table]
        return [*table, *_DERIVED]

    def compare(self, field: Field) -> FieldDifference | None:
        offsets = _bytes_in(self.delta & field.mask)
        if not offsets:
            return None
        a, b = (_words_of(field, raw, p) for raw, p in ((self.left, self.p), (self.right, self.q)))
        if a == b == "absent":
            return None
        meaning = _meaning(field)
        if "absent" in (a, b):
            meaning = f"lost in {'a' if a == 'absent' else 'b'}: {meaning}"
        return FieldDifference(field.label, a, b, offsets, meaning, field.read_by_load)


def _delta(a: bytes, b: bytes) -> int:
    """Return the bits in which the two maps differ."""
    return int.from_bytes(a, "little") ^ int.from_bytes(b, "little")


def _meaning(field: Field) -> str:
    return MEANINGS[field.name] + ("" if field.read_by_load else "; a load does not read it")


def _unknown(a: bytes, b: bytes, delta: int, reported: Iterable[Field]) -> list[FieldDifference]:
    """Return the differing bits that no reported field explains, for each word."""
    for field in reported:
        delta &= ~field.mask
    found = []
    for word in range(DESCRIPTOR_BYTES // 4):
        bits = Field(f"unknown bits of word {word}", (Piece(word, 0, 32),))
        if offsets := _bytes_in(delta & bits.mask):
            left, right = (f"{stored_value(raw, bits) & delta >> 32 * word:#x}" for raw in (a, b))
            found.append(FieldDifference(bits.name, left, right, offsets, _UNKNOWN))
    return found


def _bytes_in(bits: int) -> tuple[int, ...]:
    """Return the bytes of a descriptor that contain at least one of the bits.

    >>> _bytes_in(0x300 | 1 << 1023)
    (1, 127)
    """
    return tuple(i for i, byte in enumerate(bits.to_bytes(DESCRIPTOR_BYTES, "little")) if byte) if bits else ()


def _full_table(p: Params) -> tuple[Field, ...]:
    """Return the fields of the map's mode for every rank.

    The fields beyond the map's rank are usually zero.
    """
    # The layout of the im2col corners in a map depends on the rank.
    rank = p.rank if isinstance(p, Im2colParams) else MAX_RANK
    return fields(type(p), rank)


def field_words(params: Params) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Return each field of a map with its name, its value as text, and the bytes of the descriptor that contain it.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams

    Raises
    ------
    TensorMapError
        If the parameters do not fit in 128 bytes.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> p = TiledParams(data_type=9, global_address=0, global_dim=(64,), global_strides=(), box_dim=(64,),
    ...                 element_strides=(1,))
    >>> field_words(p)[0], field_words(p)[2]
    (('data_type', 'BFLOAT16', (8, 9, 10)), ('global_dim[0]', '64', (32, 33, 34, 35)))
    """
    raw = encode(params)
    return tuple((f.label, _words_of(f, raw, params), f.byte_offsets) for f in fields(type(params), params.rank))


def _words_of(field: Field, raw: bytes, params: Params) -> str:
    """Return the value of one field as text, or ``"absent"`` if the mode or the rank does not have this field."""
    if field is IM2COL:
        return "im2col" if isinstance(params, Im2colParams) else "tiled"
    if field is RANK:
        return str(params.rank)
    if field in _DERIVED:
        return str(stored_value(raw, field))
    if field not in fields(type(params), params.rank):
        return "absent"
    value = getattr(params, field.name)
    value = value if field.index is None else value[field.index]
    if field.name in PARAMETER_ENUMS:
        return PARAMETER_ENUMS[field.name](value).short_name
    return f"{value:#x}" if field.name == "global_address" else f"{value}{_UNITS.get(field.name, '')}"


_UNITS = {"global_strides": " bytes"}
_UNKNOWN = "no field is known there; its effect on a load is unknown"
