"""The 128 bytes of a tensor map: where each field lies, parameters to bytes and back, and what differs between two."""

from ._codec import decode, encode
from ._diff import FieldDifference, diff, field_words

__all__ = ["FieldDifference", "decode", "diff", "encode", "field_words"]
