"""Compare two descriptors that should be equal, without a GPU.

A public bug report (NVIDIA/cutlass, issue 3236) contains a compiler's descriptor for 4-bit elements on compute
capability 12.0, and the driver's descriptor. Four bytes differ. This script explains each of these bytes.
"""

import argparse

import cuda_tma
from cuda_tma.codec import diff
from cuda_tma.params import TiledParams

DRIVER = TiledParams(
    data_type=cuda_tma.TensorMapDataType.PACKED_16U4_ALIGN16B,
    global_address=0x7F0000000000,
    global_dim=(128, 128, 1),
    global_strides=(64, 8192),
    box_dim=(128, 128, 1),
    element_strides=(1, 1, 1),
    swizzle=cuda_tma.TensorMapSwizzle.SWIZZLE_128B,
    l2_promotion=cuda_tma.TensorMapL2Promotion.L2_128B,
)
COMPILER_BYTES = {8: 0x92, 9: 0x05, 17: 0x00, 73: 0x00}


def compiler_descriptor() -> bytes:
    """Return the driver's 128 bytes with the four bytes of the report."""
    raw = bytearray(cuda_tma.encode(DRIVER, compute_capability=(12, 0)))
    for offset, byte in COMPILER_BYTES.items():
        raw[offset] = byte
    return bytes(raw)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for number, difference in enumerate(diff(compiler_descriptor(), DRIVER), 1):
        print(f"{number}. {difference}")
