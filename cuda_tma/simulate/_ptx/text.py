"""PTX from users, as text or as a file that contains the text."""

from __future__ import annotations

import os

from ..._budget import KERNEL_BYTES
from ..._files import text_of_file

__all__ = ["text_of"]

# PTX ISA, "PTX Module Directives: .version": each module begins with it; a comment may come first.
_BEGINNINGS = (".version ", ".version\t", "/*")


def text_of(given: str | os.PathLike[str]) -> str:
    """Return the text; a str of one line is the name of a file, unless it begins as PTX does.

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
