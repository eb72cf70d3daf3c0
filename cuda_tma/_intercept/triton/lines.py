"""The correction of source lines in Triton's PTX.

LLVM counts the lines of an inline assembly, and begins with the line of its statement. The second instruction of a
`tl.load` therefore has the line after the statement. Triton makes most of its accesses by inline assembly.
"""

from __future__ import annotations

import re

__all__ = ["with_lines_of_calls"]

_ASSEMBLY = re.compile(r"// begin inline asm.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^[ \t]*\.loc[ \t][^\n]*$", re.MULTILINE)


def with_lines_of_calls(ptx: str) -> str:
    """Return PTX in which each instruction of an inline assembly has the line of its statement."""
    return _ASSEMBLY.sub(lambda block: _LOCATION.sub("", block[0]), ptx)
