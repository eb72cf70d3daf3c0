"""The memory of a launch, which returns the bytes at the addresses of lanes, or a fault with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._budget import LOCAL_BYTES, STACK_BYTES
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.lanes import Lanes, as_array
from .._warps.spaces import OFFSET_MASK, RANK_SHIFT, SHARED_START, WINDOW_BYTES, WINDOWS
from .global_memory import Buffer, GlobalMemory, Segment

__all__ = ["Memory", "Piece"]

_FIRST_STACK_BYTES = 1 << 10


class Piece(NamedTuple):
    """Accesses to one buffer, with their indices among the accesses of all lanes, and their positions.

    The indices are None if the buffer contains all accesses.
    """

    chosen: np.ndarray | None
    buffer: Buffer
    positions: np.ndarray
    space: str

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the elements of `values` that belong to these accesses."""
        return values if self.chosen is None or np.ndim(values) == 0 else values[self.chosen]


class Memory:
    """The global memory of a launch, and the shared and local memory of its resident CTAs.

    Attributes
    ----------
    shared : Buffer
        The shared memory of all resident CTAs in sequence; each CTA has `shared_pitch` bytes.
    """

    def __init__(self, memory: GlobalMemory, geometry: Geometry, shared_bytes: int, shared_first: int = SHARED_START):
        self._shared_first = shared_first
        self.all_global = memory
        self._geometry = geometry
        self.shared_stop = SHARED_START + shared_bytes
        self.shared_pitch = -(-self.shared_stop // 1024) * 1024
        self.shared = Buffer(np.zeros(self.shared_pitch * geometry.resident_ctas, np.uint8))
        self._stack_bytes = _FIRST_STACK_BYTES
        self._local = Buffer(np.zeros(self._stack_bytes * geometry.lanes, np.uint8))

    def pieces(
        self, space: str, lanes: Lanes, addresses: np.ndarray, size_bytes: int, writes: bool = False
    ) -> list[Piece]:
        """Return the accesses of all lanes, grouped by buffer, where all accesses have the same size.

        Parameters
        ----------
        space : str
            The state space of the addresses; the empty string means generic addresses.
        lanes : slice or numpy.ndarray
        addresses : numpy.ndarray of int64
            The address of each lane in the state space.
        size_bytes : int
            The size of each access; the addresses are multiples of the size.
        writes : bool
        """
        if len(addresses) == 1 and (one := self._one(space, lanes, int(addresses[0]), size_bytes, writes)) is not None:
            return [one]
        if ((addresses & (size_bytes - 1)) != 0).any():
            raise _misaligned(lanes, addresses, size_bytes)
        if space in ("shared", "shared::cluster"):
            positions = self.shared_positions(lanes, addresses, size_bytes, space)
            return [Piece(None, self.shared, positions, "shared")]
        if space == "local":
            # The buffer is read after the call, because `_local_positions` may replace the buffer of local memory.
            positions = self._local_positions(lanes, addresses, size_bytes)
            return [Piece(None, self._local, positions, "local")]
        if space in ("global", "const", "param"):
            return [*self._global(lanes, addresses + WINDOWS[space], size_bytes, writes)]
        return [*self._generic(lanes, addresses, size_bytes, writes)]

    def _one(self, space: str, lanes: Lanes, address: int, size_bytes: int, writes: bool) -> Piece | None:
        """Return the access of one lane to shared or global memory; None if only the general method can do it."""
        if address & (size_bytes - 1):
            return None
        if space in ("shared", "shared::cluster"):
            lane = lanes.start if isinstance(lanes, slice) else int(lanes[0])
            position = self._reached(space, lane, address, size_bytes)
            return None if position is None else Piece(None, self.shared, np.array([position]), "shared")
        if space != "global":
            return None
        segment = self.all_global.find(address)
        if segment is None or address + size_bytes > segment.stop or (writes and not segment.writeable):
            return None
        return Piece(None, segment, np.array([address - segment.start]), "global")

    def _reached(self, space: str, lane: int, address: int, size_bytes: int) -> int | None:
        """Return the position in `shared` for a shared address; None if the lane cannot access the address."""
        rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
        ctas = self._geometry.cluster_ctas
        if not (0 <= rank < ctas and self._shared_first <= offset <= self.shared_stop - size_bytes):
            return None
        if ctas > 1 and space == "shared" and rank != self._geometry.rank_of_lane[lane]:
            return None
        return (int(self._geometry.first_cta_of_cluster[lane]) + rank) * self.shared_pitch + offset

    def writeable(self) -> Iterator[np.ndarray]:
        """Yield all bytes of memory that a kernel can change."""
        yield self.shared.bytes
        yield self._local.bytes
        for segment in self.all_global:
            if segment.writeable:
                yield segment.bytes

    def in_shared(
        self, space: str, lanes: Lanes, addresses: np.ndarray, size_bytes: int, alignment: int = 8
    ) -> np.ndarray:
        """Return the positions in `shared` for shared addresses, or for generic addresses of a CTA's own memory."""
        if len(addresses) == 1 and space and not (address := int(addresses[0])) % alignment:
            lane = lanes.start if isinstance(lanes, slice) else int(lanes[0])
            if (position := self._reached(space, lane, address, size_bytes)) is not None:
                return np.array([position])
        if space == "":
            addresses, space = addresses - WINDOWS["shared"], "shared"
            if ((addresses < 0) | (addresses >= WINDOW_BYTES)).any():
                raise Fault(
                    "fault", ("the address is not in the CTA's shared memory; pass an address in that memory"), lanes
                )
        self.check_aligned(lanes, addresses, alignment)
        return self.shared_positions(lanes, addresses, size_bytes, space)

    @staticmethod
    def check_aligned(lanes: Lanes, addresses: np.ndarray, alignment: int) -> None:
        """Raise a fault if an address is not a multiple of the alignment."""
        wrong = addresses % alignment != 0
        if wrong.any():
            address = int(addresses[wrong][0])
            raise Fault(
                "misaligned",
                (f"the address 0x{address:x} must be a multiple of {alignment}, but is not"),
                as_array(lanes)[wrong],
            )

    def shared_positions(self, lanes: Lanes, addresses: np.ndarray, size_bytes: int, space: str) -> np.ndarray:
        """Return the positions in `shared` for shared addresses, each with the rank of a CTA and an offset."""
        if self._geometry.cluster_ctas == 1 and self._are_inside(addresses, size_bytes):
            return self._geometry.cta_of_lane[lanes] * self.shared_pitch + addresses
        ranks, offsets = addresses >> RANK_SHIFT, addresses & OFFSET_MASK
        bad_rank = (ranks < 0) | (ranks >= self._geometry.cluster_ctas)
        if bad_rank.any():
            raise _no_such_cta(lanes, addresses, bad_rank, self._geometry.cluster_ctas)
        if space == "shared" and self._geometry.cluster_ctas > 1:
            far = ranks != self._geometry.rank_of_lane[lanes]
            if far.any():
                raise self._of_another_cta(lanes, addresses, far)
        outside = (offsets < self._shared_first) | (offsets + size_bytes > self.shared_stop)
        if outside.any():
            raise self._outside_shared(lanes, addresses, outside, size_bytes)
        first = self._geometry.first_cta_of_cluster[lanes]
        return (first + ranks) * self.shared_pitch + offsets

    def _are_inside(self, addresses: np.ndarray, size_bytes: int) -> bool:
        """Return whether all addresses are in the shared memory of a CTA without a cluster."""
        return bool(addresses.min() >= self._shared_first and addresses.max() + size_bytes <= self.shared_stop)

    def shared_position(self, space: str, lane: int, address: int, size_bytes: int, alignment: int = 8) -> int:
        """Return the position in `shared` for one shared address of a lane, as `in_shared` does for several lanes."""
        position = self._reached(space, lane, address, size_bytes) if address % alignment == 0 else None
        if position is not None:
            return position
        (found,) = self.in_shared(space, slice(lane, lane + 1, 1), np.array([address]), size_bytes, alignment)
        return int(found)

    def clear_shared(self, ctas: range) -> None:
        """Fill the shared memory of new CTAs with zeros, although its content is undefined on hardware."""
        self.shared.bytes[ctas.start * self.shared_pitch : ctas.stop * self.shared_pitch] = 0

    def _local_positions(self, lanes: Lanes, addresses: np.ndarray, size_bytes: int) -> np.ndarray:
        end = int(addresses.max()) + size_bytes
        if (addresses < 0).any():
            raise Fault("out-of-bounds", "an access to local memory at an address below the thread's stack", lanes)
        if end > STACK_BYTES:
            text = f"an access to byte {end - size_bytes} of local memory, of which a thread has {STACK_BYTES}"
            raise Fault(
                "out-of-bounds", f"{text}: see the index", as_array(lanes)[addresses + size_bytes > STACK_BYTES]
            )
        if end > self._stack_bytes:
            self.reserve_stack(end)
        return as_array(lanes) * self._stack_bytes + addresses

    @property
    def local_pitch(self) -> int:
        """Return the distance in bytes between the local memory of two lanes."""
        return self._stack_bytes

    def fill_local(self, lanes: np.ndarray, offsets: np.ndarray, byte: int) -> None:
        """Set some bytes of the local memory of lanes to the value `byte`."""
        self.reserve_stack(int(offsets.max()) + 1)
        self._local.bytes.reshape(-1, self._stack_bytes)[lanes[:, None], offsets] = byte

    def reserve_stack(self, size_bytes: int) -> None:
        """Reserve `size_bytes` bytes of local memory for each thread."""
        if size_bytes > STACK_BYTES:
            raise Fault(
                "fault",
                f"stack overflow: a thread needs {size_bytes} bytes of local memory, but has {STACK_BYTES}: the "
                "recursion is too deep, or does not end",
            )
        if size_bytes <= self._stack_bytes:
            return
        old, before = self._local.bytes, self._stack_bytes
        self._stack_bytes = 1 << (size_bytes - 1).bit_length()
        if (whole := self._stack_bytes * self._geometry.lanes) > LOCAL_BYTES:
            raise Fault(
                "fault",
                f"{self._geometry.lanes} threads at the same time need {whole} bytes of local memory, but the "
                f"simulator has {LOCAL_BYTES}: end the recursion, or create a Device with a smaller "
                "multiprocessor_count, which runs fewer threads at the same time",
            )
        grown = np.zeros((self._geometry.lanes, self._stack_bytes), np.uint8)
        grown[:, :before] = old.reshape(-1, before)
        self._local = Buffer(grown.reshape(-1))

    def _generic(self, lanes: Lanes, addresses: np.ndarray, size_bytes: int, writes: bool) -> Iterator[Piece]:
        """Yield the accesses to generic addresses, window by window; usually all addresses are in one window."""
        rest = np.ones(len(addresses), bool)
        for space in ("shared::cluster", "local"):
            inside = (addresses >= WINDOWS[space]) & (addresses < WINDOWS[space] + WINDOW_BYTES)
            if inside.any():
                rest &= ~inside
                some = as_array(lanes)[inside]
                for piece in self.pieces(space, some, addresses[inside] - WINDOWS[space], size_bytes, writes):
                    yield piece._replace(chosen=None if inside.all() else np.flatnonzero(inside))
        if rest.all():
            yield from self._global(lanes, addresses, size_bytes, writes)
        elif rest.any():
            chosen = np.flatnonzero(rest)
            for piece in self._global(as_array(lanes)[chosen], addresses[chosen], size_bytes, writes):
                yield piece._replace(chosen=piece.of(chosen))

    def _global(self, lanes: Lanes, addresses: np.ndarray, size_bytes: int, writes: bool) -> Iterator[Piece]:
        first, last = int(addresses.min()), int(addresses.max())
        segment = self.all_global.find(first)
        if segment is not None and last + size_bytes <= segment.stop:
            self._check_writeable(segment, lanes, addresses, writes)
            yield Piece(None, segment, addresses - segment.start, "global")
            return
        rest = np.arange(len(addresses))
        while len(rest):
            address = int(addresses[rest[0]])
            segment = self.all_global.find(address)
            if segment is None or address + size_bytes > segment.stop:
                raise self._unmapped(as_array(lanes)[rest[:1]], address, size_bytes, writes)
            inside = (addresses[rest] >= segment.start) & (addresses[rest] + size_bytes <= segment.stop)
            chosen = rest[inside]
            self._check_writeable(segment, as_array(lanes)[chosen], addresses[chosen], writes)
            yield Piece(chosen, segment, addresses[chosen] - segment.start, "global")
            rest = rest[~inside]

    def global_bytes(self, address: int, size_bytes: int, writes: bool = False) -> tuple[Segment, int]:
        """Return the segment that contains a range of global memory, and the offset of the range in the segment."""
        segment = self.all_global.find(address)
        if segment is None or address + size_bytes > segment.stop:
            raise self._unmapped(None, address, size_bytes, writes)
        if writes and not segment.writeable:
            self._check_writeable(segment, None, np.array([address]), writes)
        return segment, address - segment.start

    # ---- faults ----

    def _check_writeable(
        self, segment: Segment, lanes: Lanes | np.ndarray | None, addresses: np.ndarray, writes: bool
    ) -> None:
        if writes and not segment.writeable:
            raise Fault(
                "out-of-bounds",
                f"a write to 0x{int(addresses[0]):x} in {segment.name}, which is read-only",
                lanes,
            )

    def _unmapped(self, lanes: np.ndarray | None, address: int, size_bytes: int, writes: bool) -> Fault:
        what = f"a {'write' if writes else 'read'} of {size_bytes} bytes at 0x{address:x}"
        if (former := self.all_global.former(address)) is not None:
            return Fault("out-of-bounds", f"{what}, where {former.name} {former.end}", lanes)
        before = self.all_global.before(address)
        if before is None or address - before.stop > 1 << 30:
            return Fault("out-of-bounds", f"{what}, where no array lies; pass a pointer to an array", lanes)
        return Fault(
            "out-of-bounds",
            f"{what}, {address + size_bytes - before.stop} bytes beyond the end of {before.name} at 0x{before.start:x}",
            lanes,
        )

    def _of_another_cta(self, lanes: Lanes, addresses: np.ndarray, far: np.ndarray) -> Fault:
        """Return the fault for an address in the shared memory of another CTA.

        For st and mbarrier.try_wait, an H200 reports CUDA_ERROR_ILLEGAL_INSTRUCTION (measured).
        """
        address, some = int(addresses[far][0]), as_array(lanes)[far]
        own = int(self._geometry.rank_of_lane[some[0]])
        return Fault(
            "cluster",
            f"shared address 0x{address:x} lies in CTA {address >> RANK_SHIFT} of the cluster, and an instruction of "
            f".shared or .shared::cta reaches the shared memory of its own CTA only, here CTA {own} (PTX ISA, "
            '"Shared State Space"; an H200 ends it as an illegal instruction): take the .shared::cluster form, if the '
            "instruction has one, or let a thread of that CTA execute it",
            some,
        )

    def _outside_shared(self, lanes: Lanes, addresses: np.ndarray, outside: np.ndarray, size_bytes: int) -> Fault:
        address = int(addresses[outside][0])
        offset = (address & OFFSET_MASK) - SHARED_START
        return Fault(
            "out-of-bounds",
            f"{size_bytes} bytes at byte {offset} of shared memory, of which the CTA has "
            f"{self.shared_stop - SHARED_START}: see shmem_size, and the index",
            as_array(lanes)[outside],
        )


def _misaligned(lanes: Lanes, addresses: np.ndarray, size_bytes: int) -> Fault:
    wrong = (addresses & (size_bytes - 1)) != 0
    address = int(addresses[wrong][0])
    return Fault(
        "misaligned",
        f"an access of {size_bytes} bytes at 0x{address:x}, which is not a multiple of {size_bytes}",
        as_array(lanes)[wrong],
    )


def _no_such_cta(lanes: Lanes, addresses: np.ndarray, wrong: np.ndarray, cluster_ctas: int) -> Fault:
    address = int(addresses[wrong][0])
    return Fault(
        "cluster",
        f"shared address 0x{address:x} names CTA {address >> RANK_SHIFT} of the cluster, which has {cluster_ctas}",
        as_array(lanes)[wrong],
    )
