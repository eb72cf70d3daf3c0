"""The 128 bytes of a tensor map: the place of each field, and functions that encode, decode and compare the bytes."""

from ._codec import decode, encode
from ._diff import FieldDifference, diff, field_words

__all__ = ["FieldDifference", "decode", "diff", "encode", "field_words"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
