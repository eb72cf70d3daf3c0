"""Compile a Triton GEMM for sm_90 to ``benchmarks/triton/gemm.ptx.gz`` without a GPU.

Run the script with Triton 3.9 installed: ``python benchmarks/triton/compile_gemm.py``. The benchmark of the simulator
launches the result, because the PTX of this compiler differs from NVRTC's.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
OPTIONS = {"num_warps": 4, "num_stages": 3}


@triton.jit
def gemm(a, b, c, rows, columns, depth, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Multiply a tile of `a` (rows x depth) by a tile of the transposed `b` (columns x depth)."""
    tile, across = tl.program_id(0), tl.cdiv(columns, BLOCK_N)
    row, column = tile // across * BLOCK_M, tile % across * BLOCK_N
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(depth, BLOCK_K)):
        sums = tl.dot(a.load([row, step * BLOCK_K]), b.load([column, step * BLOCK_K]).T, sums)
    c.store([row, column], sums.to(tl.float16))


def main() -> None:
    boxes = {"a": ("BLOCK_M", "BLOCK_K"), "b": ("BLOCK_N", "BLOCK_K"), "c": ("BLOCK_M", "BLOCK_N")}
    signature = {name: f"tensordesc<fp16[{TILE[m]},{TILE[n]}]>" for name, (m, n) in boxes.items()}
    signature |= dict.fromkeys(("rows", "columns", "depth"), "i32") | dict.fromkeys(TILE, "constexpr")
    source = ASTSource(gemm, signature, constexprs=TILE)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=OPTIONS)
    folder = Path(__file__).parent
    # The script removes the folders of this machine from the file names in the PTX.
    ptx = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", compiled.asm["ptx"])
    (folder / "gemm.ptx.gz").write_bytes(gzip.compress(ptx.encode(), 9, mtime=0))
    metadata = compiled.metadata
    print(metadata.shared, metadata.num_warps, json.dumps(metadata.tensordesc_meta, default=str))


if __name__ == "__main__":
    main()
