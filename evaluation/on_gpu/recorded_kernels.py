"""Repeat recorded launches by CuPy, for kernels of runtimes that are not installed on the machine with the GPU.

``cuda-tma sanitize --record FILE`` writes the files, on any machine. On this GPU, the memory has other addresses, so
the script changes pointers and tensor maps. The script does not change pointers in memory, so a kernel that follows
such pointers cannot run. Run this script below ``sanitize --on-gpu``.

Examples
--------
    python evaluation/on_gpu/recorded_kernels.py FILE...
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import cupy
import numpy as np

from cuda_tma._intercept.launches import RecordedLaunch, read_recording


class Memory:
    """The memory of a recorded launch, on this GPU."""

    def __init__(self, launch: RecordedLaunch):
        variables = set(launch.variables.values())
        self.segments = [each for each in launch.memory if each.address not in variables and each.data]
        self.arrays = [cupy.asarray(np.frombuffer(each.data, np.uint8)) for each in self.segments]

    def moved(self, address: int) -> int | None:
        """Return the present address for a recorded address."""
        for segment, array in zip(self.segments, self.arrays, strict=True):
            if 0 <= address - segment.address < len(segment.data):
                return int(array.data.ptr) + address - segment.address
        return None


def arguments_of(launch: RecordedLaunch, memory: Memory) -> Iterator[np.ndarray]:
    """Yield the bytes of each parameter, with present addresses."""
    for raw in launch.arguments:
        # A parameter may contain pointers, and the first 8 bytes of a tensor map are a pointer.
        size = 8 if len(raw) == 128 else len(raw) // 8 * 8
        words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, size, 8)]
        raw = b"".join((memory.moved(each) or each).to_bytes(8, "little") for each in words) + raw[size:]
        yield np.frombuffer(raw, f"V{len(raw)}")[0]


def run(launch: RecordedLaunch) -> None:
    """Run a launch."""
    memory = Memory(launch)
    # The version of the PTX becomes 9.0, because a driver of CUDA 13.0 accepts no later version.
    ptx, grid = re.sub(r"^\.version 9\.\d+", ".version 9.0", launch.ptx, flags=re.MULTILINE), launch.config.grid
    if cluster := launch.config.cluster:
        grid = tuple(by * extent for by, extent in zip(grid, cluster, strict=True))
        directive = f".reqnctapercluster {', '.join(map(str, cluster))}\n"
        if ".reqnctapercluster" not in ptx:
            ptx = re.sub(rf"(\.entry\s+{re.escape(launch.entry)}\s*\([^)]*\)\s*)", rf"\1{directive}", ptx)
    module = cupy.cuda.function.Module()
    module.load(ptx.encode())
    function = module.get_function(launch.entry)
    if launch.config.shmem_size:
        cupy.cuda.driver.funcSetAttribute(function.ptr, 8, launch.config.shmem_size)
    function(grid, launch.config.block, tuple(arguments_of(launch, memory)), launch.config.shmem_size)
    cupy.cuda.Device().synchronize()


def main() -> None:
    for path in sys.argv[1:]:
        for number, launch in enumerate(read_recording(path)):
            run(launch)
            print(path, number, launch.runtime, launch.kernel, flush=True)


if __name__ == "__main__":
    main()
