"""The names of kernels in the spelling of the program's source."""

from __future__ import annotations

import re

from ..._compile.plain_names import plain_name

__all__ = ["kernel_name"]

_LENGTH = re.compile(r"\d{1,4}")
_NUMBA = re.compile(r"B\d+v\d")  # Numba adds a tag such as B2v1 to the name of each specialization of a function.


def kernel_name(entry: str) -> str:
    """Return the name of a kernel without the types of its parameters, or of a Python function without its module.

    >>> kernel_name("_ZN8__main__3addB2v1B4cw51E5ArrayIdLi1E"), kernel_name("_Z3addPfS_"), kernel_name("add")
    ('add', 'add', 'add')
    """
    at, last = len("_ZN"), ""
    while entry.startswith("_ZN") and (length := _LENGTH.match(entry, at)) is not None:
        at = length.end() + int(length[0])
        last = entry[length.end() : at]
    return last if last and _NUMBA.match(entry, at) else plain_name(entry)
