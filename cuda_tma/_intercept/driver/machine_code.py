"""Machine code whose PTX is known, because an adapter saw a compiler write both."""

from __future__ import annotations

__all__ = ["keep", "ptx_of_code"]

_kept: list[tuple[bytes, str]] = []
_LEAST_BYTES = 256


def keep(code: bytes, ptx: str) -> None:
    """Keep the PTX of some machine code."""
    if len(code) >= _LEAST_BYTES:
        _kept.append((code, ptx))


def ptx_of_code(code: bytes) -> str | None:
    """Return the PTX of some machine code, the newest if there are several; None if it is not known.

    A program hands over no size, and the end of its image may be cut off or filled up: the common bytes decide.
    """
    for known, ptx in reversed(_kept):
        size = min(len(known), len(code))
        if size >= _LEAST_BYTES and known[:size] == code[:size]:
            return ptx
    return None
