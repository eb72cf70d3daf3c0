"""Threads that make maps, aim them elsewhere, prepare, launch and capture at once, every result looked at: on a GPU.

Each thread has tensors and a stream of its own, and all share what the package keeps: kernels, configurations, options,
prepared launches. Ends with 1 if a tile was wrong, a thread failed, or memory grew:

    python tools/stress_threads.py --minutes 8
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import torch
from cuda import core

import cuda_tma

ROWS, COLUMNS, TILE_ROWS = 64, 64, 8
SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Rows = Tile<FLOAT32, Box<8, 64>>;

template <typename Map> __device__ void load_rows(const Map& map, float* out, int row) {
    __shared__ Rows tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{0, row});
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < 8 * 64; i += blockDim.x) out[i] = tile(i / 64, i % 64);
}
extern "C" __global__ void typed(const __grid_constant__ TiledMap<Rows> map, float* out, int row) {
    load_rows(map, out, row);
}
extern "C" __global__ void from_memory(const TiledMap<Rows>* maps, int index, float* out, int row) {
    fence_tensor_map_acquire(maps[index]);
    load_rows(maps[index], out, row);
}
"""
MOST_GROWTH_MB = 48  # of the process and of the device, after a fifth of the time


class Shared:
    """What all threads use."""

    def __init__(self) -> None:
        self.device = cuda_tma.Device(0)
        self.device.set_current()
        self.typed, self.from_memory = (cuda_tma.compile(SOURCE, name) for name in ("typed", "from_memory"))
        self.config = core.LaunchConfig(grid=1, block=64)
        self.options = cuda_tma.TensorMapOptions((TILE_ROWS, COLUMNS))


class Worker:
    """One thread: its tensors, its stream, and what it did."""

    def __init__(self, shared: Shared, seed: int) -> None:
        self.shared, self.random = shared, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stream = shared.device.create_stream()
        self.torch_stream = torch.cuda.ExternalStream(int(self.stream.handle))
        with torch.cuda.stream(self.torch_stream):
            self.tensors = [torch.rand(ROWS, COLUMNS, device="cuda") for _ in range(8)]
            self.out = torch.zeros(TILE_ROWS, COLUMNS, device="cuda")
        self.stream.sync()

    def run(self, until: float) -> None:
        self.shared.device.set_current()
        works = (self.create, self.replace, self.launch_tensor, self.prepare, self.capture, self.upload)
        with torch.cuda.stream(self.torch_stream):
            while time.monotonic() < until:
                work = self.random.choice(works)
                try:
                    work()
                except Exception as error:
                    self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")
                    return
                self.done[work.__name__] += 1

    def pick(self) -> tuple[torch.Tensor, int]:
        return self.random.choice(self.tensors), self.random.randrange(0, ROWS - TILE_ROWS + 1)

    def check(self, what: str, tensor: torch.Tensor, row: int) -> None:
        """The stream is torch's current one: these wait for the launch."""
        if not torch.equal(self.out, tensor[row : row + TILE_ROWS]):
            self.wrong.append(f"{what}: another tile than that of row {row}")
        self.out.zero_()

    def launch(self, given: object, row: int) -> None:
        cuda_tma.launch(self.stream, self.shared.config, self.shared.typed, given, self.out, row)

    def create(self) -> None:
        tensor, row = self.pick()
        self.launch(cuda_tma.create_tensor_map(tensor, self.shared.options), row)
        self.check("create", tensor, row)

    def replace(self) -> None:
        descriptor = cuda_tma.create_tensor_map(self.tensors[0], self.shared.options)
        for _ in range(4):
            tensor, row = self.pick()
            descriptor.replace_address(tensor)
            self.launch(descriptor, row)
            self.check("replace", tensor, row)

    def launch_tensor(self) -> None:
        tensor, row = self.pick()
        self.launch(tensor, row)
        self.check("launch_tensor", tensor, row)

    def prepare(self) -> None:
        step = cuda_tma.prepare(self.shared.typed, self.shared.config, self.tensors[0], self.out, 0)
        for _ in range(4):
            tensor, row = self.pick()
            step[0], step[2] = tensor, row
            step(self.stream)
            self.check("prepare", tensor, row)

    def capture(self) -> None:
        tensor, row = self.pick()
        step = cuda_tma.prepare(self.shared.typed, self.shared.config, tensor, self.out, row)
        builder = self.shared.device.create_graph_builder().begin_building()
        step(builder)
        cuda_tma.graph.keep_alive(builder, step)
        graph = builder.end_building().complete()
        (node,) = builder.graph_definition.nodes()
        graph.launch(self.stream)
        self.check("capture", tensor, row)
        live = cuda_tma.graph.ExecutableKernelNode(graph, node, step)
        tensor, row = self.pick()
        live[0], live[2] = tensor, row
        graph.launch(self.stream)
        self.check("capture, changed", tensor, row)
        graph.close()
        builder.close()

    def upload(self) -> None:
        maps = cuda_tma.create_tensor_maps(self.tensors, self.shared.options)
        buffer = maps.upload(self.stream)
        index, row = self.random.randrange(len(maps)), self.random.randrange(0, ROWS - TILE_ROWS + 1)
        cuda_tma.launch(self.stream, self.shared.config, self.shared.from_memory, buffer, index, self.out, row)
        self.check("upload", self.tensors[index], row)
        buffer.close(self.stream)


def memory_mb() -> tuple[int, int]:
    """Of this process, and of the device."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    free, total = torch.cuda.mem_get_info()
    return pages * resource.getpagesize() >> 20, (total - free) >> 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    shared = Shared()
    workers = [Worker(shared, chosen.seed * 1000 + index) for index in range(chosen.threads)]
    start = time.monotonic()
    threads = [threading.Thread(target=worker.run, args=(start + 60 * chosen.minutes,)) for worker in workers]
    for thread in threads:
        thread.start()
    return report(workers, watch(threads, start, chosen.minutes), time.monotonic() - start)


def watch(threads: list[threading.Thread], start: float, minutes: float) -> list[tuple[int, int]]:
    """Memory after each twentieth of the time."""
    samples = []
    for part in range(1, 21):
        while time.monotonic() < start + 3 * minutes * part and any(thread.is_alive() for thread in threads):
            time.sleep(0.2)  # this thread runs what graphs let go of
        samples.append(memory_mb())
    for thread in threads:
        thread.join()
    return samples


def report(workers: list[Worker], samples: list[tuple[int, int]], seconds: float) -> int:
    done = sum((worker.done for worker in workers), Counter())
    wrong = [f"thread {index}: {what}" for index, worker in enumerate(workers) for what in worker.wrong]
    settled, last = samples[3], samples[-1]
    growth = [after - before for before, after in zip(settled, last, strict=True)]
    print(f"{len(workers)} threads, {seconds:.0f} s, Python {sys.version.split()[0]}: {sum(done.values())} works")
    print(", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    print(f"process {settled[0]} to {last[0]} MB, device {settled[1]} to {last[1]} MB, from a fifth of the time on")
    print("\n".join(wrong[:20]) or "no wrong tile")
    return 1 if wrong or max(growth) > MOST_GROWTH_MB else 0


if __name__ == "__main__":
    sys.exit(main())
