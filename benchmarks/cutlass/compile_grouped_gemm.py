"""Compile CUTLASS's example 57 for sm_90a to ``benchmarks/cutlass/grouped_gemm.ptx.xz``, without a GPU.

Run ``python benchmarks/cutlass/compile_grouped_gemm.py CUTLASS CURAND`` with nvcc 13.0.88 on the path, a checkout of
github.com/NVIDIA/cutlass at v4.2.1, and the include folder of nvidia-curand 10.4.0.35 (from PyPI). The benchmark of the
simulator loads the result, a long PTX text of several kernels.
"""

from __future__ import annotations

import argparse
import lzma
import re
import subprocess
from pathlib import Path

EXAMPLE = "examples/57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu"
INCLUDES = ("include", "tools/util/include", "examples/common")
OPTIONS = ("-std=c++17", "-arch=sm_90a", "-ptx", "-lineinfo", "--expt-relaxed-constexpr", "-o", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cutlass", type=Path, help="the checkout")
    parser.add_argument("curand", type=Path, help="the folder of curand_kernel.h")
    given = parser.parse_args()
    folders = [given.curand, *(given.cutlass / each for each in INCLUDES)]
    command = ["nvcc", *OPTIONS, *(f"-I{folder}" for folder in folders), str(given.cutlass / EXAMPLE)]
    ptx = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # The script removes the folders of this machine from the file names in the PTX.
    ptx = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", ptx)
    Path(__file__).with_name("grouped_gemm.ptx.xz").write_bytes(lzma.compress(ptx.encode(), preset=9))


if __name__ == "__main__":
    main()
