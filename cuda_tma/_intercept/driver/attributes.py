"""The attributes of the simulated GPU, by ``CUdevice_attribute``."""

from __future__ import annotations

import os
from typing import Any

from ..._limits import MAX_SMEM_BYTES, MAX_SMEM_BYTES_OF_MAJOR

__all__ = ["device_attributes", "total_bytes"]

_MOST = (1 << 31) - 1

# Every GPU with TMA has the attributes in _COMMON. Attributes 13 and 36 are clock rates in kHz, 37 is the width of the
# memory bus in bits, and 38 is the size of L2 in bytes.
_COMMON = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: _MOST, 6: 65535, 7: 65535, 8: 48 << 10, 9: 64 << 10, 10: 32, 11: _MOST,
    12: 65536, 13: 1_000_000, 14: 512, 15: 1, 19: 1, 30: 512, 31: 1, 36: 1_000_000, 37: 1024, 38: 50 << 20, 39: 2048,
    40: 2, 41: 1, 51: 32, 78: 1, 79: 1, 80: 1, 82: 65536, 83: 1, 87: 2, 89: 1, 90: 1, 91: 1, 95: 1, 99: 1, 102: 1,
    106: 32, 109: 128 << 20, 111: 1024, 115: 1, 120: 1, 127: 1, 129: 1, 134: -1, 131: -1, 144: 1,
}  # fmt: skip
_MULTIPROCESSORS, _MAJOR, _MINOR, _SHARED_OF_MULTIPROCESSOR, _THREADS, _SHARED_OPT_IN = 16, 75, 76, 81, 39, 97
_RESERVED_BYTES = 1024  # The driver reserves 1024 bytes of shared memory in each CTA.


def device_attributes(device: Any) -> dict[int, int]:
    """Return the attributes of a simulated device."""
    major, minor = device.compute_capability
    shared = MAX_SMEM_BYTES_OF_MAJOR.get(major, MAX_SMEM_BYTES)
    return _COMMON | {
        _MULTIPROCESSORS: device.multiprocessor_count,
        _MAJOR: major,
        _MINOR: minor,
        _SHARED_OPT_IN: shared,
        _SHARED_OF_MULTIPROCESSOR: shared + _RESERVED_BYTES,
        _THREADS: 1536 if major == 12 else 2048,
    }


def total_bytes() -> int:
    """Return the memory size of the simulated GPU, which is three quarters of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 * 3
