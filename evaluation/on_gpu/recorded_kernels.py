"""Recorded launches again, by CuPy: kernels of runtimes that are not installed on the machine with the GPU.

``cuda-tma sanitize --record FILE`` writes the files, on any machine. Memory has other addresses here, so pointers and
tensor maps are changed; a launch with pointers in memory is skipped. Run this script below ``sanitize --on-gpu``:

    python evaluation/on_gpu/recorded_kernels.py FILE...
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace

import cupy
import numpy as np

import cuda_tma
from cuda_tma._intercept.launches import RecordedLaunch, read_recording


class Memory:
    """The memory of a recorded launch, on this GPU."""

    def __init__(self, launch: RecordedLaunch):
        variables = set(launch.variables.values())
        self.segments = [each for each in launch.memory if each.address not in variables and each.data]
        self.arrays = [cupy.asarray(np.frombuffer(each.data, np.uint8)) for each in self.segments]

    def moved(self, address: int) -> int | None:
        """Return the present address of a recorded one."""
        for segment, array in zip(self.segments, self.arrays, strict=True):
            if 0 <= address - segment.address < len(segment.data):
                return int(array.data.ptr) + address - segment.address
        return None

    def has_pointers(self) -> bool:
        """Report whether a segment contains an address of another."""
        words = (np.frombuffer(each.data[: len(each.data) // 8 * 8], np.uint64) for each in self.segments)
        low = min((each.address for each in self.segments), default=0)
        high = max((each.address + len(each.data) for each in self.segments), default=0)
        return any(self.moved(int(each)) is not None for all_ in words for each in all_[(all_ >= low) & (all_ < high)])


def arguments_of(launch: RecordedLaunch, memory: Memory) -> Iterator[np.ndarray]:
    """Yield the bytes of each parameter, with present addresses."""
    for number, raw in enumerate(launch.arguments):
        if number in launch.tensor_maps:
            params = cuda_tma.decode(raw)
            address = memory.moved(params.global_address)
            raw = cuda_tma.encode(replace(params, global_address=address or params.global_address))
        elif len(raw) == 8 and (address := memory.moved(int.from_bytes(raw, "little"))):
            raw = address.to_bytes(8, "little")
        yield np.frombuffer(raw, f"V{len(raw)}")[0]


def run(launch: RecordedLaunch) -> str:
    """Run a launch, and return the reason if that is impossible."""
    memory = Memory(launch)
    if memory.has_pointers():
        return "its memory contains pointers"
    ptx, grid = launch.ptx, launch.config.grid
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
    return ""


def main() -> None:
    for path in sys.argv[1:]:
        for number, launch in enumerate(read_recording(path)):
            reason = run(launch)
            print(path, number, launch.runtime, launch.kernel, reason or "run", flush=True)


if __name__ == "__main__":
    main()
