"""The functions and values that several tests of wgmma operands share."""

from __future__ import annotations

from cuda_tma.enums import TensorMapSwizzle

SWIZZLES = (TensorMapSwizzle.SWIZZLE_32B, TensorMapSwizzle.SWIZZLE_64B, TensorMapSwizzle.SWIZZLE_128B)


def descriptor(mode: int, address: int, leading_bytes: int, stride_bytes: int) -> int:
    """Return the expected matrix descriptor, by the section "Matrix Descriptor Format" of the PTX ISA."""
    layout = {0: 0, 1: 3, 2: 2, 3: 1}[int(mode)]
    return address >> 4 | leading_bytes >> 4 << 16 | stride_bytes >> 4 << 32 | layout << 62
