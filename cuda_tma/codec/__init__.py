"""The 128 bytes of a tensor map: where each field lies, parameters to bytes and back, and what differs between two."""

from ._codec import decode, encode, stored_transfer_bytes, stored_value, with_value
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
    "BEYOND_PARAMS",
    "IM2COL",
    "RANK",
    "SWIZZLE_REPEAT_BYTES",
    "TRANSFER_BYTES",
    "Field",
    "FieldDifference",
    "decode",
    "diff",
    "diff_stored",
    "encode",
    "fields",
    "stored_transfer_bytes",
    "stored_value",
    "with_value",
    "words_of",
]
