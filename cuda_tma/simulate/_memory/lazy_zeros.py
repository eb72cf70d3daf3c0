"""Large arrays of zeros, in which a launch writes few pages."""

from __future__ import annotations

import mmap
from math import prod
from typing import Any

import numpy as np

__all__ = ["lazy_zeros"]


def lazy_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array of zeros whose pages the operating system allocates at the first write to each page.

    NumPy requests huge pages (``MADV_HUGEPAGE``), so one written element of `numpy.zeros` may need 2 MiB.
    """
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):  # Python defines MADV_NOHUGEPAGE only on Linux.
        return np.zeros(shape, dtype)
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, max(1, size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype, prod(shape)).reshape(shape)
