"""The function that finds the name of a barrier in the source line of a wait."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OBJECT = r"(?P<name>[A-Za-z_]\w*(?:(?:\.|->|::)\w+|\[[^][]*\])*)"
_CALLS = (
    re.compile(_OBJECT + r"(?:\.|->)(?:try_)?(?:wait|acquire|drain|next|draw)\w*\s*\("),
    re.compile(r"\baccumulate\s*(?:<[^<>]*>)?\s*\(\s*\w+\s*,\s*" + _OBJECT),
)


def barrier_name(lines: Iterable[str], line: int, side: str = "") -> str:
    """Return the barrier's name in the source line of a wait, in backticks, or "" if the line contains no name.

    Parameters
    ----------
    lines : iterable of str
        The lines of the source.
    line : int
        The number of the line, from 1.
    side : {"", "full", "empty"}
        The kind of barrier of a Pipeline.

    Examples
    --------
    >>> barrier_name(["shared.ring.wait(at);", "full[i].wait(0);"], 1, "full")
    '`shared.ring.full`'
    """
    text = dict(enumerate(lines, 1)).get(line, "").partition("//")[0]
    for call in _CALLS:
        names = {found["name"] for found in call.finditer(text)}
        if len(names) == 1:
            return f"`{names.pop()}{'.' + side if side else ''}`"
    return ""
