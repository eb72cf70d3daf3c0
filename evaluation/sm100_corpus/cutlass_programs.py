"""Programs of CUTLASS in C++ for sm_100, which nvcc compiles to PTX, and which compare their results with a reference.

`run_corpus.py` builds the programs and runs them. nvcc 13.0 took 133 to 407 seconds for each program, with other work
on the same 2 cores. The nvfp4 GEMM has a tile of 128 x 128 in a cluster of one CTA, in place of 256 x 256 in a cluster
of 2 x 4. The GEMMs have ``--beta=1``, because without C the epilogue of CUTLASS 7107b0553 does not wait for its last
store (`early-exit`, by the text of the PTX ISA).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["PROGRAMS", "built"]

LIBRARY = Path(__file__).parents[2] / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"
NVCC = ("nvcc", "-std=c++17", "-O2", "-lineinfo", "-cudart", "shared", "-w", "--expt-relaxed-constexpr")
PTX = ("-gencode", "arch=compute_100a,code=compute_100a")
_TUTORIAL = "cute/tutorial/blackwell"
_NVFP4 = "72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm.cu"
_GEMM = "--iterations=1 --beta=1"
# The table maps a short name to a source file and the arguments of its program. The table omits 01_mma_sm100.cu, which
# copies its tiles without a proxy fence.
PROGRAMS = {
    "tutorial-02": f"{_TUTORIAL}/02_mma_tma_sm100.cu 256 256 128",
    "tutorial-03": f"{_TUTORIAL}/03_mma_tma_multicast_sm100.cu 512 1024 128",
    "tutorial-04": f"{_TUTORIAL}/04_mma_tma_2sm_sm100.cu 512 1024 128",
    "tutorial-05": f"{_TUTORIAL}/05_mma_tma_epi_sm100.cu 256 256 128",
    "f16": f"70_blackwell_gemm/70_blackwell_fp16_gemm.cu --m=256 --n=256 --k=128 {_GEMM}",
    "nvfp4": f"{_NVFP4} --m=128 --n=128 --k=256 {_GEMM}",
    "nvfp4-tiles": f"{_NVFP4} --m=256 --n=256 --k=512 {_GEMM}",
}
SMALLER = {"Shape<_256,_256,_256>": "Shape<_128,_128,_256>", "Shape<_2,_4,_1>": "Shape<_1,_1,_1>"}


def built(name: str, cutlass: Path, folder: Path, include: list[str]) -> list[str]:
    """Return the command of a program. Compile the program if the folder does not contain it."""
    source, *arguments = PROGRAMS[name].split()
    program = folder / Path(source).stem
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "libcuda.so").unlink(missing_ok=True)
        (folder / "libcuda.so").symlink_to(LIBRARY)
        text = (cutlass / "examples" / source).read_text("utf-8")
        for before, after in SMALLER.items() if source == _NVFP4 else ():
            text = text.replace(before, after)
        copy = program.with_suffix(".cu")
        copy.write_text(text, "utf-8")
        own = (cutlass / "examples" / source).parent
        folders = [own, cutlass / "include", cutlass / "tools/util/include", cutlass / "examples/common", *include]
        given = [f"-I{each}" for each in folders]
        subprocess.run([*NVCC, *PTX, *given, copy, f"-L{folder}", "-lcuda", "-o", program], check=True)
    return [str(program), *arguments]
