"""The PTX of an image that a program loads: a text, a fat binary, or machine code, which the simulator cannot run."""

from __future__ import annotations

from .fat_binaries import entries_of, is_fat_binary, ptx_for

__all__ = ["NoPTX", "ptx_of"]


class NoPTX(ValueError):
    """An image that contains no PTX for the device."""


def ptx_of(image: bytes, compute_capability: tuple[int, int]) -> str:
    """Return the PTX text of an image for a device.

    Raises
    ------
    NoPTX
        If it contains none that the device can run.
    ValueError
        If the image is broken.
    """
    major, minor = compute_capability
    target = f"compute_{major}{minor}a"
    remedy = f"the simulator runs PTX. Remedy: compile with -gencode arch={target},code={target}"
    if image.startswith(b"\x7fELF"):
        raise NoPTX(f"the image is machine code, and {remedy}")
    if not is_fat_binary(image):
        return image.rstrip(b"\0").decode("utf-8", "replace")
    ptx = ptx_for(image, compute_capability)
    if ptx is None:
        contents = ", ".join(dict.fromkeys(each.described() for each in entries_of(image))) or "nothing"
        raise NoPTX(f"the fat binary contains {contents}, no PTX for compute capability {major}.{minor}, and {remedy}")
    return ptx
