"""The PTX text in an argument, which is the text itself or the path of a file."""

from __future__ import annotations

import os

from ..._budget import KERNEL_BYTES
from ..._files import text_of_file

__all__ = ["text_of"]

# Each module begins with the directive .version (PTX ISA, "PTX Module Directives: .version"); a comment may precede it.
_BEGINNINGS = (".version ", ".version\t", "/*")


def text_of(given: str | os.PathLike[str]) -> str:
    """Return the PTX text; a str of one line is the name of a file, unless it begins as PTX does.

    Raises
    ------
    OSError
        If the argument is a file that cannot be read.
    ValueError
        If the file is too large for PTX.
    """
    if isinstance(given, str) and ("\n" in given or given.lstrip().startswith(_BEGINNINGS)):
        return str(given)
    return text_of_file(given, KERNEL_BYTES, "replace")
