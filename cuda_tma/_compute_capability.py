"""The parser of compute capabilities, which accepts a pair of numbers or a text in one of the usual spellings."""

from __future__ import annotations

import operator
import re

from ._errors import TensorMapError
from ._given import shown

__all__ = ["NEWEST_COMPUTE_CAPABILITY", "NEWEST_MAJOR", "parse_compute_capability"]

# The newest compute capability is 12.x (CUDA 13.5 Programming Guide, compute capabilities). A number above 12 is the
# attribute `arch` of a device in cuda.core, such as 90 for compute capability 9.0. A function that used `arch` as the
# major number would treat every device as the newest device.
NEWEST_MAJOR = 12
NEWEST_COMPUTE_CAPABILITY = (NEWEST_MAJOR, 9)  # The rules treat later devices as devices of compute capability 12.9.
_SPELLING = re.compile(r"(sm_|compute_)?([0-9]+)(?:\.([0-9]))?[af]?", re.IGNORECASE)


def parse_compute_capability(value: object) -> tuple[int, int]:
    """Return the pair (major, minor) of a value.

    Parameters
    ----------
    value : (int, int) or str
        ``Device().compute_capability`` of cuda.core, or a text: ``"9.0"``, ``"90"`` (its ``arch``), ``"9"``,
        ``"sm_90a"``, ``"compute_100f"``.

    Returns
    -------
    (int, int)

    Raises
    ------
    TensorMapError
        If the value is not such a pair or text, or its numbers are unknown. The major number is 1 to 12, the minor
        number 0 to 9.

    Examples
    --------
    >>> parse_compute_capability("sm_90a"), parse_compute_capability("100"), parse_compute_capability((12, 1))
    ((9, 0), (10, 0), (12, 1))
    """
    found = _of_text(value) if isinstance(value, str) else _of_pair(value)
    if found is None or not (1 <= found[0] <= NEWEST_MAJOR and 0 <= found[1] <= 9):
        raise TensorMapError(
            f'compute_capability is {shown(value)}; pass (major, minor), such as (9, 0), or a str, such as "9.0", "90" '
            f'or "sm_90a", with a major number of at most {NEWEST_MAJOR}'
        )
    return found


def _of_pair(value: object) -> tuple[int, int] | None:
    if not isinstance(value, tuple | list) or len(value) != 2 or any(isinstance(part, bool) for part in value):
        return None
    try:
        return operator.index(value[0]), operator.index(value[1])
    except TypeError:
        return None


def _of_text(text: str) -> tuple[int, int] | None:
    """Return the pair of a text.

    The last digit of a text without a point is the minor number, except in "9" and "10".
    """
    match = _SPELLING.fullmatch(text.strip())
    if match is None or len(match[2]) > 3:
        return None
    prefix, number, minor = match[1], int(match[2]), match[3]
    if minor is not None:
        return None if prefix else (number, int(minor))
    return (number, 0) if number < 20 and not prefix else divmod(number, 10)
