"""The PTX of an image that a program loads. Fat binaries are not unpacked yet."""

from __future__ import annotations

__all__ = ["NoPTX", "ptx_of"]


class NoPTX(ValueError):
    """An image that contains only machine code."""


def ptx_of(image: bytes) -> str:
    """Return the PTX text of an image.

    Raises
    ------
    NoPTX
        If it is machine code.
    """
    if image.startswith(b"\x7fELF"):
        raise NoPTX("the image is machine code, and the simulator runs PTX: compile for compute_XX, not for sm_XX")
    return image.rstrip(b"\0").decode("utf-8", "replace")
