"""The generic address space, which has addresses of 64 bits and contains all state spaces.

The simulator places the windows of the state spaces above all addresses of a real GPU, whose memory may be mapped too.
A shared address contains an offset of 24 bits and, above it, the rank of the CTA in its cluster. Offsets begin at 1024.
Machine code for sm_90 uses the same encoding (observed: ``0x400`` and ``SR_CgaCtaId << 24`` in its disassembly). A
``shared::cta`` address is also a ``shared::cluster`` address.

Source: PTX ISA 9.0, "Generic Addressing" and "State Spaces".
"""

from __future__ import annotations

__all__ = [
    "FUNCTION_WINDOW",
    "GLOBAL_START",
    "GRID_WORKSPACE",
    "LOCAL_WINDOW",
    "OFFSET_MASK",
    "PARAM_WINDOW",
    "RANK_SHIFT",
    "RESERVED_SHARED",
    "SHARED_START",
    "SHARED_WINDOW",
    "WINDOWS",
    "WINDOW_BYTES",
    "space_of",
]

WINDOW_BYTES = 1 << 40
SHARED_WINDOW = 0x0F00_0000_0000_0000
LOCAL_WINDOW = 0x0E00_0000_0000_0000
PARAM_WINDOW = 0x0D00_0000_0000_0000
# The first function has the address FUNCTION_WINDOW, and the next functions follow at intervals of 16 bytes.
FUNCTION_WINDOW = 0x0C00_0000_0000_0000
# In a cooperative launch, the memory at GRID_WORKSPACE contains the barrier of the grid.
GRID_WORKSPACE = 0x0B00_0000_0000_0000
GLOBAL_START = 0x10_0000_0000

SHARED_START = 0x400  # The shared memory that a kernel may use begins at byte 0x400.
# The register %reserved_smem_offset_1 contains 0x2C0, where cooperative groups use at least 288 bytes.
RESERVED_SHARED = 0x2C0
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1

# The table maps a state space to its first generic address, which is 0 for global and constant memory. The space
# "shared" is .shared::cta, the memory of the thread's own CTA, which is the default sub-qualifier in PTX.
WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "const": 0,
    "global": 0,
}


def space_of(address: int) -> str:
    """Return the state space to which a generic address belongs."""
    for space in ("shared", "local", "param"):
        if WINDOWS[space] <= address < WINDOWS[space] + WINDOW_BYTES:
            return space
    return "global"
