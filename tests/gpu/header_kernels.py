"""Kernels that each use one function of the device header, and the memory that the kernels access."""

import ctypes
import dataclasses
import functools

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma

FILL = 0xA5
# Each kernel fills a window of 40 KiB of shared memory, and copies the window to the output at the end.
WINDOW_BYTES = 40 * 1024
MEMORY_BYTES = 2**20 + 2**16

HINTS = ("", ", evict_first()", ", evict_last()", ", evict_normal()", ", evict_unchanged()")

PRELUDE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/scope.cuh>
#include <cuda_tma/store_async.cuh>
#include <cuda_tma/tensor_map_replace.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;

// The work of one CTA of a cluster. `slot` is its place in the window.
struct Place { int at[5]; unsigned short offset[3]; unsigned short cta_mask; unsigned tx_bytes; unsigned slot; };
struct Places { Place of[4]; };

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The window of shared memory, filled from `bytes`, or with a pattern, and visible to the TMA unit.
__device__ unsigned char* filled_window(const unsigned char* bytes, unsigned count) {
    extern __shared__ unsigned char raw[];
    unsigned char* window = raw + (1024 - smem_address(raw) % 1024) % 1024;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) window[i] = bytes ? bytes[i] : 0xA5;
    fence_proxy_async();
    __syncthreads();
    return window;
}
__device__ void show(const unsigned char* window, unsigned char* out, unsigned count) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) out[i] = window[i];
}
// A barrier that never completes should fail the test, not hang it. The limit is in seconds, not in tries: try_wait()
// may return early, and under compute-sanitizer other threads of the CTA can be a thousand times slower than this one.
__device__ void wait_or_trap(Barrier& full, unsigned parity) {
    const unsigned long long start = nanoseconds();
    while (!full.try_wait(parity, 1000000))
        if (nanoseconds() - start > 60000000000ull) __trap();
}

extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, const __grid_constant__ Places places,
                                  unsigned char* memory, const unsigned char* bytes, unsigned char* out,
                                  unsigned count) {
    const Place& p = places.of[cluster_cta_rank()];
    __shared__ Barrier full;
"""
# One thread of each kernel executes {statement}, which calls the tested function of the header.
LOAD = """
    unsigned char* window = filled_window(nullptr, count);
    unsigned char* tile = window + p.slot;
    if (threadIdx.x == 0) {{
        full.init(1);
        fence_barrier_init();
    }}
    __syncthreads();   // without it compute-sanitizer's racecheck warns of the arrival
    if (threadIdx.x == 0) full.arrive_expect_tx(p.tx_bytes);
    cluster_sync();   // no bytes come before the barriers of all CTAs expect them
    if (threadIdx.x == 0) {{ {statement} }}
    wait_or_trap(full, 0);
    show(window, out + cluster_cta_rank() * count, count);
    cluster_sync();   // no CTA ends while others still write to it
}}
"""
STORE = """
    const unsigned char* tile = filled_window(bytes, count);
    if (threadIdx.x == 0) {{
        {statement}
        commit_group();
        wait_group();
    }}
}}
"""
# The second wait acquires at cluster scope, because threads of other CTAs send the data without a copy.
RECEIVE = LOAD.replace("wait_or_trap(full, 0);", "wait_or_trap(full, 0);\n    full.wait_cluster(0);")
SHAPES = {"load": LOAD, "receive": RECEIVE, "store": STORE, "plain": "\n    {statement}\n}}\n"}


class Place(ctypes.Structure):
    """The Python structure with the fields of the kernels' C++ struct Place."""

    _fields_ = (
        ("at", ctypes.c_int * 5), ("offset", ctypes.c_ushort * 3), ("cta_mask", ctypes.c_ushort),
        ("tx_bytes", ctypes.c_uint), ("slot", ctypes.c_uint),
    )  # fmt: skip


class Places(ctypes.Structure):
    _fields_ = (("of", Place * 4),)


def place(coordinates=(), offsets=(), cta_mask=0, tx_bytes=0, slot=0):
    """Return a structure Place whose coordinates are in driver order."""
    return Place((ctypes.c_int * 5)(*coordinates), (ctypes.c_ushort * 3)(*offsets), cta_mask, tx_bytes, slot)


def coordinates_of(rank):
    """Return C++ code for the coordinates of a structure Place."""
    return f"Coordinates{{{', '.join(f'p.at[{i}]' for i in range(rank))}}}"


def offsets_of(rank):
    return f"Offsets{{{', '.join(f'p.offset[{i}]' for i in range(rank - 2))}}}"


def name_of(op):
    """Return the name of a reduction in the device header, which differs from the C++ keywords and, or, xor."""
    return f"bit_{op}" if op in ("and", "or", "xor") else op


def machine_fixture(said=None):
    """Make a Machine for the tests of a module. After the tests, publish the results of its launches and kernels."""

    @pytest.fixture(scope="module")
    def machine(device, stream, publish):
        machine = Machine(device, stream)
        yield machine
        if said is not None:
            publish(said.format(launches=machine.launches, kernels=machine.kernel.cache_info().currsize))

    return machine


class Machine:
    """A GPU, an allocation in its memory, and the kernels compiled so far."""

    def __init__(self, device, stream):
        self.device, self.stream = device, stream
        sizes = {"memory": MEMORY_BYTES, "bytes": WINDOW_BYTES, "out": 4 * WINDOW_BYTES}
        self.buffers = {name: device.allocate(size, stream=stream) for name, size in sizes.items()}
        self.base = int(self.buffers["memory"].handle)
        self.nowhere = self.map(cuda_tma.params_of(cuda_tma.TensorSpec((16,), "uint8"), box_dim=(16,)))
        stream.sync()
        self.kernel = functools.cache(self._compile)
        self.launches = 0

    def _compile(self, shape, statement):
        return cuda_tma.compile(PRELUDE + SHAPES[shape].format(statement=statement), "kernel", cache=False)

    def map(self, params):
        """Return the descriptor of parameters whose address is an offset in the memory."""
        moved = dataclasses.replace(params, global_address=params.global_address + self.base)
        return cuda_tma.TensorMapDescriptor.from_bytes(cuda_tma.encode(moved, compute_capability=(9, 0)))

    def put(self, name, array):
        """Copy bytes to the GPU in stream order, because cuMemcpyHtoD may return before its DMA ends (CUDA, "API
        synchronization behavior")."""
        to, stream = int(self.buffers[name].handle), int(self.stream.handle)
        (error,) = driver.cuMemcpyHtoDAsync(to, array.ctypes.data, array.nbytes, stream)
        assert not error, error

    def get(self, name, count):
        array = np.empty(count, np.uint8)
        (error,) = driver.cuMemcpyDtoH(array.ctypes.data, int(self.buffers[name].handle), count)
        assert not error, error
        return array

    def run(self, shape, statement, places=(), *, params=None, count=0, **config):
        """Run one launch of a cluster that has one CTA for each place."""
        every = Places((Place * 4)(*places))
        if len(places) > 1:
            config["cluster"] = len(places)
        # The field grid counts clusters.
        config = LaunchConfig(**{"grid": 1, "block": 128} | config, shmem_size=WINDOW_BYTES + 1024)
        cuda_tma.launch(
            self.stream, config, self.kernel(shape, statement), self.map(params) if params else self.nowhere, every,
            self.buffers["memory"], self.buffers["bytes"], self.buffers["out"], count,
        )  # fmt: skip
        self.stream.sync()
        self.launches += 1

    def load(self, statement, places, count, params=None, shape="load"):
        """Return one row of bytes for each CTA, with the content of the CTA's memory window after the launch."""
        self.run(shape, statement, places, params=params, count=count)
        return self.get("out", len(places) * count).reshape(len(places), count)

    def launch_pair(self, kernels, count, grid):
        """Run two launches; the second launch may begin before the first launch has ended."""
        arguments = (self.nowhere, Places(), self.buffers["memory"], self.buffers["bytes"], self.buffers["out"], count)
        for kernel, early in zip(kernels, (False, True), strict=True):
            config = LaunchConfig(grid=grid, block=128, programmatic_stream_serialization=early)
            cuda_tma.launch(self.stream, config, kernel, *arguments)
        self.stream.sync()

    def store(self, statement, tile, where=None, params=None):
        self.put("bytes", tile)
        self.run("store", statement, [where or place()], params=params, count=tile.size)
