"""The functions that permute byte offsets as a swizzle does."""

from __future__ import annotations

from typing import Any

from .._errors import TensorMapError
from .._given import entry, shown
from .._swizzle_pattern import PATTERNS, SwizzlePattern

__all__ = ["SwizzlePattern", "pattern", "swizzle_offset"]


def pattern(swizzle: int) -> SwizzlePattern:
    """Return the pattern of a ``TensorMapSwizzle`` value. Raise TensorMapError for other values.

    >>> pattern(2).repeat_bytes
    512
    """
    return entry("swizzle", swizzle, PATTERNS)


def swizzle_offset(swizzle: int, offset: Any) -> Any:
    """Return the place of a byte after swizzling.

    Because the permutation is its own inverse, the result for a swizzled place is the original place.

    Parameters
    ----------
    swizzle : int
        A ``TensorMapSwizzle`` value.
    offset : int or numpy.ndarray of int
        The offset in bytes from a destination that is aligned to :func:`smem_alignment`.

    Returns
    -------
    int or numpy.ndarray
        The offset in bytes from the same destination.

    Raises
    ------
    TensorMapError
        If `swizzle` is not a value of the driver, or `offset` contains values that are not integers.

    Examples
    --------
    >>> [swizzle_offset(3, line * 128) for line in range(4)]
    [0, 144, 288, 432]
    """
    xors = pattern(swizzle).xors
    try:
        # The operator ^ raises TypeError for an offset that is not an integer, even without a swizzle.
        moved = offset ^ 0
        for from_bit, to_bit, bits in xors:
            moved = moved ^ (((offset >> from_bit) & ((1 << bits) - 1)) << to_bit)
    except (TypeError, NotImplementedError):  # A torch tensor raises NotImplementedError.
        raise TensorMapError(f"offset is {shown(offset)}; pass an integer, or an array of integers") from None
    return moved
