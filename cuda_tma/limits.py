"""Sizes that the hardware and the driver set, each stated here alone."""

from __future__ import annotations

from .enums import TensorMapSwizzle as S

__all__ = [
    "CORNER_BITS",
    "CORNER_LIMIT",
    "DESCRIPTOR_BYTES",
    "MAX_BOX_DIM",
    "MAX_DOCUMENTED_DIM",
    "MAX_RANK",
    "MAX_SMEM_BYTES",
    "MAX_TRANSFER_BYTES",
    "SPAN_BYTES",
]

DESCRIPTOR_BYTES = 128  # sizeof(CUtensorMap)
MAX_RANK = 5  # cuda.h, cuTensorMapEncodeTiled, tensorRank
MAX_BOX_DIM = 256  # cuda.h: boxDim, channelsPerPixel
MAX_DOCUMENTED_DIM = 2**31  # cuda.h, globalDim; the driver takes 2^32 (observed: driver 580)
MAX_TRANSFER_BYTES = 228 * 1024  # of one load, as the driver reckons it (observed: driver 580, sm_90)
MAX_SMEM_BYTES = 227 * 1024  # of one thread block on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide)
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # of one offset of an im2col corner, by rank
CORNER_LIMIT = {rank: 1 << bits - 1 for rank, bits in CORNER_BITS.items()}  # offsets are in [-limit, limit)
SPAN_BYTES = {S.SWIZZLE_32B: 32, S.SWIZZLE_64B: 64} | {s: 128 for s in S if s >= S.SWIZZLE_128B}  # by swizzle
