"""The address space of generic addresses, which has 64 bits and contains all state spaces.

The simulator places the windows of the state spaces above all addresses of a real GPU, whose memory may be mapped too.
A shared address contains an offset of 24 bits and, above it, the rank of the CTA in its cluster. Offsets begin at 1024.
Machine code for sm_90 has both facts (observed: ``0x400`` and ``SR_CgaCtaId << 24`` in its disassembly). A
``shared::cta`` address is also a ``shared::cluster`` address.

Source: PTX ISA 9.0, "Generic Addressing", "State Spaces".
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
FUNCTION_WINDOW = 0x0C00_0000_0000_0000  # the addresses of functions, at intervals of 16 bytes
GRID_WORKSPACE = 0x0B00_0000_0000_0000  # memory of a cooperative launch for the barrier of its grid
GLOBAL_START = 0x10_0000_0000

SHARED_START = 0x400  # the first byte of a CTA's shared memory that a kernel may use
RESERVED_SHARED = 0x2C0  # %reserved_smem_offset_1, for cooperative groups: at least 288 bytes before SHARED_START
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1

# The start of the generic addresses of each space. Addresses of global and constant memory are generic addresses.
# "shared" is .shared::cta, the window of the own CTA, which PTX uses if there is no sub-qualifier.
WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "const": 0,
    "global": 0,
}


def space_of(address: int) -> str:
    """Return the state space of a generic address."""
    for space in ("shared", "local", "param"):
        if WINDOWS[space] <= address < WINDOWS[space] + WINDOW_BYTES:
            return space
    return "global"
