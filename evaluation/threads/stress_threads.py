"""Run threads that make maps, change their addresses, prepare, launch and capture at the same time on a GPU.

The script checks every result.

Each thread has its own tensors and stream. All threads share the package's caches of kernels, configurations, options
and prepared launches. The script ends with status 1 if a tile was wrong, a thread failed, or memory grew.

The script prints the memory ten times during the run, and then for each kind of work separately. For comparison, the
script prints the memory of operations of torch, cuda.core and the driver without the package, which does not count as
growth. An executable graph of cuda.core leaves 208 bytes, with or without the package's code. An executable graph of
the driver and the other operations leave no bytes (observed: H200, driver 580, cuda.core 1.2.0). Other users of the GPU
also change the device's memory, so no other program may use the GPU during the run.

Examples
--------
    python stress_threads.py --minutes 8
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import random
import resource
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import torch
from cuda import core
from cuda.bindings import driver
from memory_growth import Alone, grown_alone, others_bytes

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
extern "C" __global__ void nothing() {}
"""
WORKS = ("create", "replace", "launch_tensor", "prepare", "capture", "upload")
# The kinds of work in OTHERS_WORKS do not use the package, and serve to compare the growth of memory.
OTHERS_WORKS = ("torch_alone", "core_buffer_alone", "core_graph_alone", "driver_graph_alone")
# After a fifth of the time, the process may grow by 16 MB, without the memory that other libraries retain.
MOST_GROWTH_MB = 16
MOST_DEVICE_GROWTH_MB = 48
LIBC = ctypes.CDLL(None)


class Shared:
    """The objects that all threads use."""

    def __init__(self) -> None:
        self.device = cuda_tma.Device(0)
        self.device.set_current()
        names = "typed", "from_memory", "nothing"
        self.typed, self.from_memory, self.nothing = (cuda_tma.compile(SOURCE, name) for name in names)
        self.config = core.LaunchConfig(grid=1, block=64)
        self.options = cuda_tma.TensorMapOptions((TILE_ROWS, COLUMNS))


class Worker:
    """A thread with its tensors, its stream, and its counts."""

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

    def run(self, until: float, works: tuple[str, ...]) -> None:
        self.shared.device.set_current()
        with torch.cuda.stream(self.torch_stream):
            while time.monotonic() < until:
                name = self.random.choice(works)
                try:
                    getattr(self, name)()
                except Exception as error:
                    self.wrong.append(f"{name}: {type(error).__name__}: {error}")
                    return
                self.done[name] += 1

    def pick(self) -> tuple[torch.Tensor, int]:
        return self.random.choice(self.tensors), self.random.randrange(0, ROWS - TILE_ROWS + 1)

    def check(self, what: str, tensor: torch.Tensor, row: int) -> None:
        """Check a result.

        The current stream of torch is the stream of the thread, so these operations wait for the launch.
        """
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

    def torch_alone(self) -> None:
        tensor, row = self.pick()
        self.out.copy_(tensor[row : row + TILE_ROWS])
        self.check("torch_alone", tensor, row)

    def core_buffer_alone(self) -> None:
        self.shared.device.memory_resource.allocate(128 * len(self.tensors), stream=self.stream).close(self.stream)
        self.stream.sync()

    def core_graph_alone(self) -> None:
        builder = self.shared.device.create_graph_builder().begin_building()
        core.launch(builder, self.shared.config, self.shared.nothing)
        graph = builder.end_building().complete()
        (_,) = builder.graph_definition.nodes()
        graph.launch(self.stream)
        self.stream.sync()
        graph.close()
        builder.close()

    def driver_graph_alone(self) -> None:
        """Make the driver's graphs without the objects of cuda.core."""
        own, kernel = driver.CUstream(int(self.stream.handle)), driver.CUfunction(int(self.shared.nothing.handle))
        ok(driver.cuStreamBeginCapture(own, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, own, 0, 0))
        graph = ok(driver.cuStreamEndCapture(own))
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        ok(driver.cuGraphLaunch(executable, own))
        self.stream.sync()
        ok(driver.cuGraphExecDestroy(executable))
        ok(driver.cuGraphDestroy(graph))


def ok(answer: tuple[Any, ...]) -> Any:
    """Return the values of a cuda.bindings call without its error."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver answered {answer[0]!r}")
    return answer[1] if len(answer) > 1 else None


class Memory(NamedTuple):
    """The memory in use. The process first returns free memory to the system, so that the difference is growth."""

    done: Counter[str]  # `done` counts the work of each kind before the sample.
    process_kb: int
    trimmed_kb: int  # `trimmed_kb` is the memory of the process after the return of free memory to the system.
    python_blocks: int
    device_mb: int

    @classmethod
    def now(cls, workers: list[Worker]) -> Memory:
        done = sum((worker.done for worker in workers), Counter())
        process_kb = resident_kb()
        gc.collect()
        LIBC.malloc_trim(0)
        free, total = torch.cuda.mem_get_info()
        return cls(done, process_kb, resident_kb(), sys.getallocatedblocks(), (total - free) >> 20)


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 10


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8, help="of all kinds of work at once")
    parser.add_argument("--alone", type=float, default=5, metavar="SECONDS", help="then, of each kind; 0 for none")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    shared = Shared()
    workers = [Worker(shared, chosen.seed * 1000 + index) for index in range(chosen.threads)]
    samples = spend(60 * chosen.minutes, workers, WORKS)
    report(60 * chosen.minutes, workers, samples)
    alone = {}
    for work in (*OTHERS_WORKS, *WORKS) if chosen.alone else ():
        alone[work] = measure_alone(work, workers, chosen.alone)
    grown = [*grown_together(samples, alone), *grown_alone(alone)]
    wrong = [f"thread {index}: {what}" for index, worker in enumerate(workers) for what in worker.wrong]
    print("\n".join(wrong[:20]) or "no wrong tile")
    print("\n".join(grown) or "no growth but that of others")
    return 1 if wrong or grown else 0


def spend(seconds: float, workers: list[Worker], works: tuple[str, ...], parts: int = 10) -> list[Memory]:
    """Run these operations in all threads.

    Return the memory after each part of the time, and after the end of all threads."""
    start, samples = time.monotonic(), []
    threads = [threading.Thread(target=worker.run, args=(start + seconds, works)) for worker in workers]
    for thread in threads:
        thread.start()
    for part in range(1, parts + 1):
        while time.monotonic() < start + seconds * part / parts and any(thread.is_alive() for thread in threads):
            time.sleep(0.2)  # During the sleep, pending calls of Python free the objects that graphs release.
        if part == parts:
            for thread in threads:
                thread.join()
        samples.append(Memory.now(workers))
    return samples


def report(seconds: float, workers: list[Worker], samples: list[Memory]) -> None:
    done = samples[-1].done
    print(f"{len(workers)} threads, {seconds:.0f} s, Python {sys.version.split()[0]}: {sum(done.values())} works")
    print(", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    for part, each in enumerate(samples, 1):
        print(f"{part:2}/{len(samples)}: process {each.process_kb} KB, trimmed {each.trimmed_kb} KB, "
              f"{each.python_blocks} blocks of Python's, device {each.device_mb} MB", flush=True)  # fmt: skip


def grown_together(samples: list[Memory], alone: dict[str, Alone]) -> list[str]:
    """Return each quantity whose growth, measured after the first fifth of the time, exceeds its limit."""
    settled, last = samples[len(samples) // 5 - 1], samples[-1]
    process_kb = last.trimmed_kb - settled.trimmed_kb
    others_kb = others_bytes(last.done - settled.done, alone) >> 10
    device_mb = last.device_mb - settled.device_mb
    print(f"from a fifth of the time on: process {process_kb:+} KB, {others_kb:+} KB of it in other libraries "
          f"alone; device {device_mb:+} MB", flush=True)  # fmt: skip
    found = []
    if process_kb - others_kb > MOST_GROWTH_MB << 10:
        found.append(f"the process grew by {process_kb - others_kb} KB, which other libraries do not explain")
    if device_mb > MOST_DEVICE_GROWTH_MB:
        found.append(f"{device_mb} MB more of the device are in use, by whomever")
    return found


def measure_alone(work: str, workers: list[Worker], seconds: float) -> Alone:
    """Measure the memory that one kind of work retains, after a warm-up."""
    spend(seconds / 4, workers, (work,), parts=1)
    before = Memory.now(workers)
    spend(seconds, workers, (work,), parts=1)
    after = Memory.now(workers)  # The threads have ended, so the sample does not include their memory.
    left = Alone((after.done - before.done)[work], after.trimmed_kb - before.trimmed_kb << 10)
    print(f"{work} alone, {left.works} works: process {left.grown_bytes >> 10:+} KB, {left.bytes_each:.1f} bytes a "
          f"work; {after.python_blocks - before.python_blocks:+} blocks of Python's; device "
          f"{after.device_mb - before.device_mb:+} MB", flush=True)  # fmt: skip
    return left


if __name__ == "__main__":
    sys.exit(main())
