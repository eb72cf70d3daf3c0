"""The compile time of NVRTC with this package's header and with CCCL's headers, without a GPU.

CCCL's headers are searched in the places of cuda.pathfinder (``pip install nvidia-cuda-cccl``, or a CUDA toolkit) and
next to ``nvcc``. Without them, the tables contain only the rows of this package.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from cuda.bindings import nvrtc

import cuda_tma

from . import host
from .comparison import Comparison, Work, compare
from .host import work

TARGET = "sm_90a"
MOST_REPEATS = 7  # The number of repeats is small, because the slowest case takes more than a second.
KERNEL = 'extern "C" __global__ void kernel() {}'
LOAD = """#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, int x, int y) {
    __shared__ alignas(128) float tile[32][64];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{x, y});
    }
    __syncthreads();
    full.wait(0);
}
"""
TYPED_LOAD = """#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<32, 64>>;
extern "C" __global__ void kernel(const __grid_constant__ TiledMap<Window> map, int x, int y) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{x, y});
    }
    __syncthreads();
    full.wait(0);
}
"""
CCCL_LOAD = """#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void kernel(const __grid_constant__ Map map, int x, int y) {
    __shared__ alignas(128) float tile[32][64];
    __shared__ cuda::std::uint64_t full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(tile));
        const int at[2] = {x, y};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) continue;
}
"""


def unavailable() -> str:
    try:
        error, *_ = nvrtc.nvrtcVersion()
    # Versions 12.9 and 13.x of cuda.bindings raise different errors if the library is missing.
    except Exception as missing:
        return f"there is no NVRTC ({str(missing).splitlines()[0]}): pip install nvidia-cuda-nvrtc"
    return "" if error == nvrtc.nvrtcResult.NVRTC_SUCCESS else f"NVRTC has no version ({error})"


def machine() -> str:
    _, major, minor = nvrtc.nvrtcVersion()
    version = cccl_version()
    return f"{host.machine()}; NVRTC {major}.{minor}, {TARGET}; {f'CCCL {version}' if version else 'no CCCL found'}"


def tables(repeats: int, runs: int) -> list[Comparison]:
    notes = () if cccl() else ("CCCL was not found: pip install nvidia-cuda-cccl.",)
    return [compare("Compiling a kernel at run time", works(), min(repeats, MOST_REPEATS), notes=notes, unit="ms")]


def works() -> list[Work]:
    ours, theirs = [cuda_tma.include_path()], [str(cccl())]
    found = [
        work("a kernel without any header", partial(compile_source, KERNEL, ours)),
        work("a tiled load with `<cuda_tma/tma.cuh>`", partial(compile_source, LOAD, ours)),
        work("the same, typed, with `<cuda_tma/tile.cuh>`", partial(compile_source, TYPED_LOAD, ours)),
    ]
    if cccl():
        found.append(work("the same load with `<cuda/ptx>`", partial(compile_source, CCCL_LOAD, theirs)))
    for header in ("cuda/ptx", "cuda/barrier") if cccl() else ():
        source = f"#include <{header}>\n{KERNEL}"
        found.append(work(f"the empty kernel with `<{header}>`", partial(compile_source, source, theirs)))
    return found


def compile_source(source: str, include_path: list[str]) -> None:
    """Compile a source to machine code, as a new program each time, so that NVRTC caches no result."""
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={TARGET}", "--std=c++17", *(f"--include-path={path}" for path in include_path)]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        # NVRTC writes into the bytes object, so the object must not be shared by Python, as b" " is.
        log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1] + 1)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"NVRTC failed: {log.decode()}")
    nvrtc.nvrtcDestroyProgram(program)


@cache
def cccl() -> Path | None:
    """Return the folder of CCCL's headers."""
    for folder in _folders():
        if (folder / "cuda" / "ptx").is_file():
            return folder
    return None


def _folders() -> list[Path]:
    nvcc = shutil.which("nvcc")
    includes = [Path(nvcc).resolve().parents[1] / "include"] if nvcc else []
    includes.append(Path("/usr/local/cuda/include"))
    found = [folder for include in includes for folder in (include / "cccl", include)]
    finder = _finder()
    if finder is not None and (place := finder("cccl")) is not None:
        found.insert(0, Path(place))
    return found


def _finder() -> Callable[[str], str | None] | None:
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:  # Versions of cuda.pathfinder before 1.3 lack the function.
        return None

    def find(name: str) -> str | None:
        try:
            return find_nvidia_header_directory(name)
        except Exception:  # Some versions of cuda.pathfinder do not recognize the name of the package.
            return None

    return find


def cccl_version() -> str:
    """Return the version number in CCCL's own header, in which 3000001 is 3.0.1."""
    folder = cccl()
    if folder is None:
        return ""
    for name in ("cuda/std/__cccl/version.h", "cuda/version"):
        header = folder / name
        if header.is_file() and (found := re.search(r"define CCCL_VERSION (\d+)", header.read_text())):
            number = int(found[1])
            return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"
    return "of unknown version"
