"""The resident threads of a grid as lanes; after the end of a cluster, the next cluster uses its lanes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .lanes import WARP, WARPGROUP

__all__ = ["Geometry"]

Extents = tuple[int, int, int]

# A multiprocessor of compute capability 9.0 runs at most 2,048 threads and 32 CTAs (CUDA C++ Programming Guide).
_MOST_THREADS, _MOST_CTAS = 2048, 32
# A multiprocessor has 228 KB of shared memory, of which each CTA uses 1 KB in addition to its request.
_SHARED_BYTES = 228 << 10
_MOST_LANES = 1 << 16
# The registers and local memory of all lanes take at most 512 MB in the kernel itself; called functions need more.
_MOST_THREAD_BYTES = 1 << 29


class Geometry:
    """The shape of a launch, and the CTA that each lane belongs to at present.

    If a kernel cancels clusters, only half of the clusters begin at once, because a small grid would otherwise have no
    cluster to cancel.

    Attributes
    ----------
    grid, block, cluster : tuple of int
        The shape of the grid in CTAs, of the block in threads, and of the cluster in CTAs.
    lanes, lanes_of_cta : int
        The number of all lanes, and the number of lanes of a CTA. The lanes of a CTA are its threads, rounded up to
        whole warps, or to whole warpgroups if the CTA has at least one warpgroup.
    cluster_ctas, resident_ctas : int
        The number of CTAs of a cluster, and the number of CTAs that run at the same time.
    cta_of_lane, first_cta_of_cluster : numpy.ndarray, [lane]
        The resident CTA of each lane, and the first CTA of its cluster.
    cluster_of_slot : list of int
        The cluster of the grid in each slot; -1 for an empty slot.
    """

    def __init__(
        self,
        grid: Extents,
        block: Extents,
        cluster: Extents,
        multiprocessor_count: int,
        shared_bytes: int,
        thread_bytes: int = 0,
        leaves_clusters: bool = False,
    ):
        self.grid, self.block, self.cluster = grid, block, cluster
        self.threads = prod(block)
        whole = WARPGROUP if self.threads >= WARPGROUP else WARP
        self.lanes_of_cta = -(-self.threads // whole) * whole
        self.cluster_ctas = prod(cluster)
        x, y, z = (g // c for g, c in zip(grid, cluster, strict=True))
        self.grid_in_clusters = (x, y, z)
        self.clusters = prod(self.grid_in_clusters)
        each = self._ctas_of_multiprocessor(shared_bytes) * multiprocessor_count
        most_lanes = min(_MOST_LANES, _MOST_THREAD_BYTES // max(1, thread_bytes))
        room = min(each, most_lanes // self.lanes_of_cta) // self.cluster_ctas
        at_once = -(-self.clusters // 2) if leaves_clusters else self.clusters
        self.slots = max(1, min(at_once, room))
        self.resident_ctas = self.slots * self.cluster_ctas
        self.lanes = self.resident_ctas * self.lanes_of_cta
        self.cta_of_lane = np.repeat(np.arange(self.resident_ctas), self.lanes_of_cta)
        self.first_cta_of_cluster = self.cta_of_lane // self.cluster_ctas * self.cluster_ctas
        self.rank_of_lane = self.cta_of_lane % self.cluster_ctas
        self.thread_of_lane = np.arange(self.lanes) % self.lanes_of_cta
        self.cluster_of_slot = [-1] * self.slots
        self.columns = self._columns(multiprocessor_count)

    def _columns(self, multiprocessor_count: int) -> dict[str, np.ndarray]:
        """Return the special registers that differ between threads; :meth:`place` sets the registers of the grid."""
        lane = np.arange(self.lanes) % WARP
        bit = np.int64(1) << lane
        columns = {
            "laneid": lane,
            "warpid": self.thread_of_lane // WARP,
            "smid": self.cta_of_lane % multiprocessor_count,
            "cluster_ctarank": self.rank_of_lane,
            "lanemask_eq": bit,
            "lanemask_lt": bit - 1,
            "lanemask_le": 2 * bit - 1,
            "lanemask_gt": 0xFFFFFFFF & ~(2 * bit - 1),
            "lanemask_ge": 0xFFFFFFFF & ~(bit - 1),
        }
        indices: dict[str, tuple] = {"tid": _unravelled(self.thread_of_lane, self.block)}
        indices["cluster_ctaid"] = _unravelled(self.rank_of_lane, self.cluster)
        indices["ctaid"] = indices["clusterid"] = tuple(np.zeros((3, self.lanes), np.int64))
        return columns | {
            f"{name}.{axis}": i.copy() for name, of in indices.items() for axis, i in zip("xyz", of, strict=True)
        }

    def place(self, slot: int, cluster: int) -> np.ndarray:
        """Put a cluster of the grid into a slot, and return the lanes of its threads."""
        self.cluster_of_slot[slot] = cluster
        lanes = self.lanes_of_slot(slot)
        of_cluster = _unravelled(cluster, self.grid_in_clusters)
        for axis, index, width in zip("xyz", of_cluster, self.cluster, strict=True):
            self.columns[f"clusterid.{axis}"][lanes] = index
            self.columns[f"ctaid.{axis}"][lanes] = index * width + self.columns[f"cluster_ctaid.{axis}"][lanes]
        return lanes

    def first_ctaid(self, cluster: int) -> Extents:
        """Return ``blockIdx`` of the first CTA in a cluster."""
        x, y, z = (i * w for i, w in zip(_unravelled(cluster, self.grid_in_clusters), self.cluster, strict=True))
        return x, y, z

    def _ctas_of_multiprocessor(self, shared_bytes: int) -> int:
        by_shared = _SHARED_BYTES // (shared_bytes + 1024)
        return max(1, min(_MOST_CTAS, _MOST_THREADS // self.lanes_of_cta, by_shared))

    def lanes_of_slot(self, slot: int) -> np.ndarray:
        """Return the lanes of the threads of a cluster, without the lanes that only complete a warp."""
        size = self.cluster_ctas * self.lanes_of_cta
        lanes = np.arange(slot * size, (slot + 1) * size)
        return lanes[self.thread_of_lane[lanes] < self.threads]

    def block_index(self, cta: int) -> Extents:
        """Return ``blockIdx`` of a resident CTA."""
        x, y, z = (int(self.columns[f"ctaid.{axis}"][cta * self.lanes_of_cta]) for axis in "xyz")
        return x, y, z

    def thread_name(self, lane: int) -> str:
        """Return the name of a thread, such as ``thread 3 (warp 0)``; in a cluster, the name includes the block."""
        thread = int(self.thread_of_lane[lane])
        of = f" of block {self.block_index(int(self.cta_of_lane[lane]))}" if self.cluster_ctas > 1 else ""
        return f"thread {thread} (warp {thread // WARP}){of}"

    def blocks_and_threads(self, lanes: np.ndarray) -> tuple[tuple[Extents, ...], tuple[int, ...]]:
        """Return ``blockIdx`` of the CTAs of some lanes, and the ascending indices of the threads in their CTAs."""
        ctas, threads = np.unique(self.cta_of_lane[lanes]), np.unique(self.thread_of_lane[lanes])
        return tuple(self.block_index(int(cta)) for cta in ctas), tuple(map(int, threads))


def _unravelled(index: Any, shape: Extents) -> tuple[Any, Any, Any]:
    """Return the coordinates of an index in a shape whose x varies fastest."""
    x, y, _ = shape
    return index % x, index // x % y, index // (x * y)
