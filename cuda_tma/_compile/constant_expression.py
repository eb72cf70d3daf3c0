"""Working out what a compiler left as it was written in a name: ``mlLi2ET_``, 2 * N."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .type_tree import Node

__all__ = ["worked_out"]

_PACK_EXPANSION = "sp"
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {  # 5.1.6.1, of integers that are not negative
    "pl": operator.add,
    "mi": operator.sub,
    "ml": operator.mul,
    "dv": operator.floordiv,
    "rm": operator.mod,
    "ls": operator.lshift,
    "rs": operator.rshift,
}
_CONSTANTS = range(2**31)  # beyond, C++ and Python may reckon differently


def worked_out(terms: list[Any]) -> Node:
    """An expression's value, in which operators stand before their operands; None where it is not known."""
    values: list[Node] = []
    for term in reversed(terms):
        if term == _PACK_EXPANSION:
            continue
        if not isinstance(term, str):
            values.append(term)
            continue
        if term not in _ARITHMETIC or len(values) < 2:
            return None
        values.append(_reckoned(term, values.pop(), values.pop()))
    return values[0] if len(values) == 1 else None


def _reckoned(operator_code: str, left: Node, right: Node) -> int | None:
    """One operation on two constants."""
    if not (isinstance(left, int) and isinstance(right, int) and left in _CONSTANTS and right in _CONSTANTS):
        return None
    if (operator_code in ("dv", "rm") and right == 0) or (operator_code in ("ls", "rs") and right > 31):
        return None
    result = _ARITHMETIC[operator_code](left, right)
    return result if result in _CONSTANTS else None
