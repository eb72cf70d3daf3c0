"""The 128 bytes of a tensor map: where each field lies, parameters to bytes and back, and what differs between two.

Also the 64 bits of an mbarrier.
"""

from ._barrier import BARRIER_FIELDS, Barrier, BarrierField, decode_barrier, encode_barrier
from ._codec import decode, encode, stored_transfer_bytes, stored_value
from ._diff import FieldDifference, diff, diff_stored, words_of
from ._fields import (
    BEYOND_PARAMS,
    IM2COL,
    RANK,
    SWIZZLE_REPEAT_BYTES,
    TRANSFER_BYTES,
    Field,
    fields,
)

__all__ = [
    "BARRIER_FIELDS",
    "BEYOND_PARAMS",
    "IM2COL",
    "RANK",
    "SWIZZLE_REPEAT_BYTES",
    "TRANSFER_BYTES",
    "Barrier",
    "BarrierField",
    "Field",
    "FieldDifference",
    "decode",
    "decode_barrier",
    "diff",
    "diff_stored",
    "encode",
    "encode_barrier",
    "fields",
    "stored_transfer_bytes",
    "stored_value",
    "words_of",
]
