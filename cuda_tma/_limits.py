"""Sizes that the hardware and the driver determine, each defined only here."""

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

# The first compute capability with a feature (CUDA 13.5 driver API, cuTensorMapEncode*; CUDA C++ Programming Guide).
TMA_SINCE = (9, 0)
TMA_EXTENDED_SINCE = (10, 0)  # packed data types, the 128B_ATOM_* swizzles, im2col wide, allocation classes

DESCRIPTOR_BYTES = 128  # sizeof(CUtensorMap)
MAX_RANK = 5  # cuda.h, cuTensorMapEncodeTiled, tensorRank
MAX_BOX_DIM = 256  # cuda.h: boxDim, channelsPerPixel
MAX_PIXELS_PER_COLUMN = 1024  # cuda.h, cuTensorMapEncodeIm2col, pixelsPerColumn
MAX_ELEMENT_STRIDE = 8  # cuda.h, elementStrides
MAX_DIM = 2**32  # of globalDim (observed: driver 580)
MAX_DOCUMENTED_DIM = 2**31  # cuda.h of CUDA 13.5, globalDim
MAX_TRANSFER_BYTES = 228 * 1024  # of one load, as the driver computes it (observed: driver 580, sm_90)
MAX_SMEM_BYTES = 227 * 1024  # of one thread block on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide)
MAX_SMEM_BYTES_OF_MAJOR = {12: 99 * 1024}  # major numbers of compute capabilities with less shared memory
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # of one offset of an im2col corner, by rank
CORNER_LIMIT = {rank: 1 << bits - 1 for rank, bits in CORNER_BITS.items()}  # offsets are in [-limit, limit)
