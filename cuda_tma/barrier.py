"""The 64 bits of an mbarrier, and the place of each count in these bits: :func:`decode_barrier` and its inverse.

PTX calls the word of an mbarrier opaque (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions:
mbarrier"). The PTX ISA names the content of this word: the phase, the pending and the expected count of arrivals, and
the tx-count. The places of the counts were observed (driver 580, sm_90: ``record_barriers.py``). The observed places
agree with the machine code that ptxas 13.0 emits for sm_90, in which ``mbarrier.init`` and ``mbarrier.pending_count``
are arithmetic.

While a barrier is in use, its word is not in shared memory, and an ordinary load returns the earlier content
(observed). ``mbarrier.inval`` and the end of the CTA write the word to shared memory.
"""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from ._given import shown

__all__ = ["BARRIER_FIELDS", "Barrier", "BarrierField", "decode_barrier", "encode_barrier"]

_BITS = 64


class BarrierField(NamedTuple):
    """A run of `width` bits in the word of an mbarrier, which begins at bit `low` (bit 0 is the least significant).

    A `negated` number is stored as ``2**width - value``, so that a decrement of the value is an addition. A `signed`
    number is negative in the upper half of its range.
    """

    name: str
    low: int
    width: int
    negated: bool = False
    signed: bool = False

    @property
    def mask(self) -> int:
        """The bits of the field in the word."""
        return ((1 << self.width) - 1) << self.low

    def value_in(self, word: int) -> int:
        """Return the value of the field in a word."""
        stored = (word & self.mask) >> self.low
        value = -stored % (1 << self.width) if self.negated else stored
        return value - (1 << self.width) if self.signed and value >> (self.width - 1) else value

    def bits_of(self, value: int) -> int:
        """Return the bits of the word that store a value in this field."""
        return (-value if self.negated else value) % (1 << self.width) << self.low


BARRIER_FIELDS = (
    BarrierField("phase", 63, 1),
    BarrierField("pending_count", 43, 20, negated=True),
    BarrierField("expected_count", 1, 20, negated=True),
    BarrierField("tx_count", 21, 21, negated=True, signed=True),
)
_UNEXPLAINED = ~sum(field.mask for field in BARRIER_FIELDS) & ((1 << _BITS) - 1)


@dataclass(frozen=True, slots=True)
class Barrier:
    """The counts in the 64 bits of an mbarrier, in the terms of the PTX ISA.

    Attributes
    ----------
    phase : int
        The parity (0 or 1) of the phase that has not completed. A wait for the other parity returns at once.
    pending_count : int
        The number of arrivals that the present phase still needs.
    expected_count : int
        The number of arrivals that the next phase needs, which is the count of ``mbarrier.init`` minus the arrivals of
        ``arrive_drop``.
    tx_count : int
        The bytes that the present phase expects and that have not arrived. The count is negative if bytes arrived
        before the barrier expected them.
    unexplained : int
        The bits of the word that belong to no field.

    Examples
    --------
    >>> decode_barrier(0xFFFFF000001FFFFC)
    Barrier(phase=1, pending_count=2, expected_count=2, tx_count=0)
    """

    phase: int
    pending_count: int
    expected_count: int
    tx_count: int
    unexplained: int = 0

    def __repr__(self) -> str:
        counts = [f"{field.name}={getattr(self, field.name)}" for field in BARRIER_FIELDS]
        return f"Barrier({', '.join([*counts, *[f'unexplained={self.unexplained:#x}'] * bool(self.unexplained)])})"


def decode_barrier(word: Any) -> Barrier:
    """Decode the 64 bits of an mbarrier, which a kernel or a debugger has read from shared memory.

    The layout was observed on compute capability 9.0. PTX does not define the layout, and another device may have
    another layout.

    Parameters
    ----------
    word : int, bytes-like or array of uint8
        The word as an unsigned integer (also a NumPy integer), or its 8 bytes in the order of memory.

    Returns
    -------
    Barrier
        The counts, from which ``encode_barrier`` returns the same word.

    Raises
    ------
    TypeError
        If `word` has another type.
    ValueError
        If `word` is not a number of 64 bits, or does not have 8 bytes.

    Examples
    --------
    In the next barrier, two of three arrivals and 16,384 bytes are missing:

    >>> word = encode_barrier(Barrier(phase=0, pending_count=2, expected_count=3, tx_count=16384))
    >>> decode_barrier(word).pending_count, decode_barrier(word.to_bytes(8, "little")).tx_count
    (2, 16384)
    """
    bits = _as_bits(word)
    counts = {field.name: field.value_in(bits) for field in BARRIER_FIELDS}
    return Barrier(**counts, unexplained=bits & _UNEXPLAINED)


def _as_bits(word: Any) -> int:
    if isinstance(word, bytes | bytearray | memoryview) or getattr(word, "dtype", None) == "uint8":
        raw = bytes(word)
        if len(raw) != _BITS // 8:
            raise ValueError(f"word has {len(raw)} bytes, but an mbarrier has 8; pass 8 bytes")
        return int.from_bytes(raw, "little")
    try:
        bits = operator.index(word)
    except TypeError:
        raise TypeError(f"word={shown(word)} must be the mbarrier's 64 bits: an integer, or 8 bytes") from None
    if not 0 <= bits < 1 << _BITS:
        raise ValueError(f"word={shown(bits)} is not an unsigned integer of 64 bits; pass word % 2**64")
    return bits


def encode_barrier(barrier: Barrier) -> int:
    """Return the word that :func:`decode_barrier` decodes to `barrier`.

    Parameters
    ----------
    barrier : Barrier

    Returns
    -------
    int
        The 64 bits. A number that is too large for its field wraps.

    Raises
    ------
    TypeError
        If `barrier` has another type.

    Examples
    --------
    >>> hex(encode_barrier(Barrier(phase=1, pending_count=2, expected_count=2, tx_count=0)))
    '0xfffff000001ffffc'
    """
    if not isinstance(barrier, Barrier):
        raise TypeError(f"barrier={shown(barrier)} is not a Barrier; pass the result of decode_barrier(word)")
    counts = zip(BARRIER_FIELDS, astuple(barrier), strict=False)
    return sum(field.bits_of(value) for field, value in counts) | barrier.unexplained & _UNEXPLAINED
