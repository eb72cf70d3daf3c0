"""Machine code with known PTX, because an adapter has recorded both results of a compiler."""

from __future__ import annotations

__all__ = ["keep", "ptx_of_code"]

_kept: list[tuple[bytes, str]] = []
_LEAST_BYTES = 256


def keep(code: bytes, ptx: str) -> None:
    """Store the PTX of machine code from a compiler."""
    if len(code) >= _LEAST_BYTES:
        _kept.append((code, ptx))


def ptx_of_code(code: bytes) -> str | None:
    """Return the PTX of machine code, or None if its PTX is not known. If there are several texts, return the newest.

    A program does not pass the size of an image. The image may be shorter than the stored code, or padded. The function
    therefore compares the bytes that the image and the stored code have in common.
    """
    for known, ptx in reversed(_kept):
        size = min(len(known), len(code))
        if size >= _LEAST_BYTES and known[:size] == code[:size]:
            return ptx
    return None
