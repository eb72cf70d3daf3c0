"""The PTX of an image that a program loads: PTX itself, or a fat binary that has some."""

from __future__ import annotations

__all__ = ["NoPTX", "ptx_of"]


class NoPTX(ValueError):
    """An image that has machine code alone."""


def ptx_of(image: bytes, compute_capability: tuple[int, int]) -> str:
    """Return the PTX text of an image.

    Raises
    ------
    NoPTX
        If it has none that this compute capability takes.
    """
    if image.startswith(b"\x7fELF"):
        raise NoPTX("the image is machine code, and the simulator runs PTX: compile for compute_XX, not for sm_XX")
    return image.rstrip(b"\0").decode("utf-8", "replace")
