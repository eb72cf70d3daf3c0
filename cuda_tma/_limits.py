"""Sizes that the hardware and the driver determine. The package defines each size only in this module."""

from __future__ import annotations

__all__ = [
    "CORNER_BITS",
    "CORNER_LIMIT",
    "DESCRIPTOR_BYTES",
    "MAX_BOX_DIM",
    "MAX_DIM",
    "MAX_DOCUMENTED_DIM",
    "MAX_ELEMENT_STRIDE",
    "MAX_PIXELS_PER_COLUMN",
    "MAX_RANK",
    "MAX_SMEM_BYTES",
    "MAX_SMEM_BYTES_OF_MAJOR",
    "MAX_TRANSFER_BYTES",
    "TMA_EXTENDED_SINCE",
    "TMA_SINCE",
]

# TMA_SINCE is the first compute capability with TMA (CUDA 13.5 driver API, cuTensorMapEncode*; CUDA C++ Programming
# Guide).
TMA_SINCE = (9, 0)
# Compute capability 10.0 adds packed data types, the 128B_ATOM_* swizzles, im2col wide maps and allocation classes.
TMA_EXTENDED_SINCE = (10, 0)

DESCRIPTOR_BYTES = 128  # A tensor map has sizeof(CUtensorMap) bytes.
MAX_RANK = 5  # The limit is from the description of tensorRank in cuda.h.
MAX_BOX_DIM = 256  # The limit is from the description of boxDim and channelsPerPixel in cuda.h.
MAX_PIXELS_PER_COLUMN = 1024  # The limit is from the description of pixelsPerColumn in cuda.h.
MAX_ELEMENT_STRIDE = 8  # The limit is from the description of elementStrides in cuda.h.
MAX_DIM = 2**32  # The driver accepts a globalDim up to 2**32 (observed: driver 580).
MAX_DOCUMENTED_DIM = 2**31  # The file cuda.h of CUDA 13.5 limits globalDim to 2**31.
# MAX_TRANSFER_BYTES limits the size of a load in the driver's computation (observed: driver 580, sm_90).
MAX_TRANSFER_BYTES = 228 * 1024
# MAX_SMEM_BYTES limits a thread block of compute capability 9.0 or 10.0 (CUDA C++ Programming Guide).
MAX_SMEM_BYTES = 227 * 1024
MAX_SMEM_BYTES_OF_MAJOR = {12: 99 * 1024}  # Devices of compute capability 12.x have less shared memory.
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # CORNER_BITS maps the rank to the bits of an offset of a corner.
# An offset of a corner is in [-limit, limit).
CORNER_LIMIT = {rank: 1 << bits - 1 for rank, bits in CORNER_BITS.items()}
