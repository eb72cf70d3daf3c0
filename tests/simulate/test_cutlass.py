"""A test of a persistent, warp-specialized GEMM of CUTLASS on the simulator, with clusters of two CTAs.

`data/cutlass_gemm.cu` describes the recording of its PTX and its launch.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import ml_dtypes
import numpy as np

import cuda_tma
from cuda_tma import simulate

DATA = Path(__file__).parents[1] / "data"
PTX = gzip.decompress((DATA / "cutlass_gemm.ptx.gz").read_bytes()).decode()
MAPS, LAUNCH = {}, {}
for number, line in enumerate((DATA / "cutlass_gemm.txt").read_text().splitlines()):
    name, *words = line.split()
    (MAPS if name == "map" else LAUNCH)[number if name == "map" else name] = words
M, N, K = 192, 160, 144


def encoded(words: list[str], address: int) -> bytes:
    """Return the 128 bytes of a recorded tensor map with a new address."""
    data_type, rank, _, *rest = (int(word, 0) for word in words)
    ends = np.cumsum([rank, rank - 1, rank, rank])
    dims, strides, box, element_strides = (tuple(part.tolist()) for part in np.split(np.array(rest), ends)[:4])
    interleave, swizzle, promotion, fill = rest[ends[-1] :]
    return cuda_tma.encode(
        cuda_tma.TiledParams(
            data_type=data_type,
            global_address=address,
            global_dim=dims,
            global_strides=strides,
            box_dim=box,
            element_strides=element_strides,
            interleave=interleave,
            swizzle=swizzle,
            l2_promotion=promotion,
            oob_fill=fill,
        )
    )


def replaced(params: bytes, old: bytes, new: bytes) -> bytes:
    assert params.count(old) == 1
    return params.replace(old, new)


def test_gemm():
    """Every element of the GEMM's result is right, although the tiles of 128 x 128 x 64 do not divide the sizes."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
    # The matrix c is column-major, like the matrix d.
    c = rng.integers(-9, 9, (N, M)).astype(np.float32)
    d = np.full_like(c, np.nan)
    gpu = simulate.Device()
    params = bytes.fromhex(LAUNCH["params"][0])
    for mark, (words, array) in enumerate(
        zip(MAPS.values(), (a.view(np.uint16), b.view(np.uint16)), strict=True), 0xC0
    ):
        params = replaced(params, bytes([mark]) * 128, encoded(words, gpu.address(array)))
    for pointer, array in ((0x1122334455880000, c), (0x1122334455990000, d)):
        params = replaced(params, pointer.to_bytes(8, "little"), gpu.address(array).to_bytes(8, "little"))
    *grid, block, smem_bytes = (int(word) for word in LAUNCH["launch"])
    kernel = gpu.load(PTX, re.search(r"\.entry (\w+)\(", PTX)[1])
    config = simulate.Config(grid=tuple(grid), block=block, cluster=2, shmem_size=smem_bytes)
    report = gpu.launch(config, kernel, params)
    assert not report.findings
    assert (d == 2 * (b.astype(np.float32) @ a.astype(np.float32).T) + c / 2).all()
