"""The place of an element of a box in shared memory, with its swizzle, footprint, alignment and bank conflicts.

A load stores its box as rows. Dimension 0 is contiguous. Each row starts at a multiple of the swizzle span, so a gap
follows a row that is narrower than the span. The swizzle then permutes chunks (*atoms*) inside every span by an XOR of
address bits. Each byte remains in its span, and the swizzle is its own inverse. In an interleaved layout, the unit of
dimension 0 is a *slice* of 16 or 32 bytes, and slices are packed without gaps.

The sources are PTX ISA 9.0, 5.5.6 "Interleave layout" and 5.5.7 "Swizzling Modes". Recorded loads and stores confirm
every rule byte for byte for the element types, swizzles and interleaves of compute capability 9.0 (observed: driver
580, sm_90). The recordings cover interleave 16B with every swizzle (with a swizzle other than NONE only stores), and
interleave 32B with swizzle 32B. The driver accepts interleave 32B with other swizzles, for which the rules are assumed.
The ``128B_ATOM_*`` swizzles and the packed types are documented, but not verified on hardware. Bank conflicts are
computed from the banks of words, and were not measured.
"""

from ._banks import bank_conflicts, worst_read
from ._layout import (
    box_extents,
    smem_alignment,
    smem_bytes,
    smem_index,
    smem_layout,
    smem_offset,
    tx_bytes,
)
from ._pattern import SwizzlePattern, pattern, swizzle_offset

__all__ = [
    "SwizzlePattern",
    "bank_conflicts",
    "box_extents",
    "pattern",
    "smem_alignment",
    "smem_bytes",
    "smem_index",
    "smem_layout",
    "smem_offset",
    "swizzle_offset",
    "tx_bytes",
    "worst_read",
]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
