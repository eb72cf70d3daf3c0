"""One address space of 64 bits for all state spaces, as generic addresses see it.

Where the windows lie is this simulator's choice: beyond all addresses of a real GPU's memory, which may be mapped, too.
That a shared address holds the CTA's rank in its cluster above 24 bits of offset, and that offsets begin at 1024, is
what machine code for sm_90 shows (observed: ``0x400`` and ``SR_CgaCtaId << 24`` in its disassembly). A ``shared::cta``
address is a ``shared::cluster`` address, too.

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
FUNCTION_WINDOW = 0x0C00_0000_0000_0000  # addresses of functions, 16 bytes apart
GRID_WORKSPACE = 0x0B00_0000_0000_0000  # what the driver gives a cooperative launch, for the barrier of its grid
GLOBAL_START = 0x10_0000_0000

SHARED_START = 0x400  # the first byte of a CTA's shared memory that a kernel may use
RESERVED_SHARED = 0x2C0  # what cooperative groups find by %reserved_smem_offset_1: at least 288 bytes before that
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1

# The start of the generic addresses of each space; those of global and constant memory are generic as they are.
# "shared" is .shared::cta, as PTX takes it without a sub-qualifier: the CTA's own window.
WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "const": 0,
    "global": 0,
}


def space_of(address: int) -> str:
    """The state space of a generic address."""
    for space in ("shared", "local", "param"):
        if WINDOWS[space] <= address < WINDOWS[space] + WINDOW_BYTES:
            return space
    return "global"
