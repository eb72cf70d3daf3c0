"""The simulator in place of the GPU of tests/gpu/header_kernels.py, with the same kernels, memory and launches."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

import cuda_tma
from cuda_tma import simulate
from tests.gpu.header_kernels import MEMORY_BYTES, PRELUDE, SHAPES, WINDOW_BYTES, Place, Places, place


@cache
def kernel_of(shape: str, statement: str) -> object:
    return simulate.Device(compute_capability=(9, 0)).compile(
        PRELUDE + SHAPES[shape].format(statement=statement), "kernel"
    )


class Machine:
    """A simulated GPU and an allocation in its memory. A launch with a finding raises an error."""

    def __init__(self):
        self.gpu = simulate.Device(compute_capability=(9, 0))
        sizes = {"memory": MEMORY_BYTES, "bytes": WINDOW_BYTES, "out": 4 * WINDOW_BYTES}
        self.buffers = {name: np.zeros(size, np.uint8) for name, size in sizes.items()}
        self.base = self.gpu.address(self.buffers["memory"])
        self.nowhere = cuda_tma.params_of(cuda_tma.TensorSpec((16,), "uint8"), box_dim=(16,))

    def map(self, params: cuda_tma.TiledParams) -> bytes:
        moved = dataclasses.replace(params, global_address=params.global_address + self.base)
        return cuda_tma.encode(moved, compute_capability=(9, 0))

    def put(self, name: str, array: np.ndarray) -> None:
        self.buffers[name][: array.nbytes] = array.reshape(-1).view(np.uint8)

    def get(self, name: str, count: int) -> np.ndarray:
        return self.buffers[name][:count].copy()

    def run(self, shape, statement, places=(), *, params=None, count=0, grid=1) -> None:
        """Run one launch of clusters that have one CTA for each place. The argument `grid` counts clusters."""
        ctas = max(len(places), 1)
        config = simulate.Config(grid=(grid, 1, 1), block=128, cluster=ctas, shmem_size=WINDOW_BYTES + 1024)
        arguments = (
            self.map(params or self.nowhere),
            bytes(Places((Place * 4)(*places))),
            *self.buffers.values(),
            count,
        )
        self.gpu.launch(config, kernel_of(shape, statement), *arguments).raise_for_errors()

    def load(self, statement, places, count, params=None, shape="load") -> np.ndarray:
        """Return one row of bytes for each CTA, with the content of the CTA's memory window after the launch."""
        self.run(shape, statement, places, params=params, count=count)
        return self.get("out", len(places) * count).reshape(len(places), count)

    def store(self, statement, tile, where=None, params=None) -> None:
        self.put("bytes", tile)
        self.run("store", statement, [where or place()], params=params, count=tile.size)
