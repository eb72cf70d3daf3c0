"""Limits on input from elsewhere (PTX, names, files, texts), each stated here only.

A limit protects the process that judges a stranger's kernel. It lies far above the sizes that real kernels have.
"""

from __future__ import annotations

__all__ = ["CALL_DEPTH", "name_steps"]

CALL_DEPTH = 4096  # calls within calls of a thread: its stack of 256 KiB has 64 bytes for each
_NAME_STEPS, _NAME_STEPS_OF_CHARACTER = 4096, 16


def name_steps(name: str) -> int:
    """Return the steps, of one type or one copied part each, in which a mangled name must be read."""
    return _NAME_STEPS + _NAME_STEPS_OF_CHARACTER * len(name)
