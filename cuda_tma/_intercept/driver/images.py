"""The search for the PTX in a module that a program loads.

A module is PTX text, a fat binary, or machine code, which the simulator cannot run.
"""

from __future__ import annotations

import re

from .fat_binaries import ELF, entries_of, is_fat_binary, ptx_for
from .machine_code import ptx_of_code

__all__ = ["NoPTX", "ptx_of"]


_KERNEL = re.compile(rb"\0\.text\.([\w$.]{1,500})(?=\0)", re.ASCII)  # Machine code has a section for each kernel.


class NoPTX(ValueError):
    """The error for an image without PTX for the device."""


def ptx_of(image: bytes, compute_capability: tuple[int, int]) -> str:
    """Return the PTX text of an image for a device.

    Raises
    ------
    NoPTX
        If the image contains no PTX that the device can run.
    ValueError
        If the image is damaged.
    """
    major, minor = compute_capability
    target = f"compute_{major}{minor}a"
    remedy = f"the simulator runs PTX. Remedy: compile with -gencode arch={target},code={target}"
    if image.startswith(b"\x7fELF"):
        known = ptx_of_code(image)
        if known is None:
            raise NoPTX(f"the image is machine code{_with_kernels(image)}, and {remedy}")
        return known
    if not is_fat_binary(image):
        return image.rstrip(b"\0").decode("utf-8", "replace")
    ptx = ptx_for(image, compute_capability) or _of_machine_code(image)
    if ptx is None:
        contents = ", ".join(dict.fromkeys(each.described() for each in entries_of(image))) or "nothing"
        raise NoPTX(
            f"the fat binary contains {contents}, but no PTX for compute capability {major}.{minor}, and {remedy}"
        )
    return ptx


def _of_machine_code(image: bytes) -> str | None:
    """Return the PTX of an entry of machine code in a fat binary, if an adapter has kept that PTX."""
    codes = (each.data() for each in entries_of(image) if each.kind == ELF)
    return next((known for known in map(ptx_of_code, codes) if known is not None), None)


def _with_kernels(code: bytes) -> str:
    """Return a phrase for an error message with the names of the kernels in machine code."""
    names = dict.fromkeys(match[1].decode("ascii") for match in _KERNEL.finditer(code))
    return f" of {', '.join(names)}" if names else ""
