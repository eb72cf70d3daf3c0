"""Machine code with known PTX: an adapter has recorded both results of a compiler."""

from __future__ import annotations

__all__ = ["keep", "ptx_of_code"]

_kept: list[tuple[bytes, str]] = []
_LEAST_BYTES = 256


def keep(code: bytes, ptx: str) -> None:
    """Store the PTX of some machine code."""
    if len(code) >= _LEAST_BYTES:
        _kept.append((code, ptx))


def ptx_of_code(code: bytes) -> str | None:
    """Return the PTX of some machine code (the newest of several), or None if it is not known.

    A program passes no size, and its image may be shorter or padded, so the bytes that both have in common are
    compared.
    """
    for known, ptx in reversed(_kept):
        size = min(len(known), len(code))
        if size >= _LEAST_BYTES and known[:size] == code[:size]:
            return ptx
    return None
