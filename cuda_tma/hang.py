"""A kernel that does not end: the waits of its threads, the missing arrivals or bytes, and the probable cause.

The simulator and the watchdog of a GPU (``watchdog_ms`` of :func:`cuda_tma.compile`) use the same type. The simulator
reports its deadlocks with it, and :func:`cuda_tma.synchronize` raises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .barrier import Barrier

__all__ = ["BarrierWait", "Hang", "KernelHang", "MbarrierWait", "Waiter"]

_WARP = 32
_MOST_LINES = 8
_Extents = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class MbarrierWait:
    """A wait of threads for an mbarrier.

    Attributes
    ----------
    name : str
        The name of the mbarrier in the source, such as ``"`ring.full`"``, or its address.
    stage : int or None
        The stage of a ``Pipeline``, or None.
    parity : int
        The parity of the phase in the wait.
    barrier : Barrier
        The counts of the mbarrier.
    expected_bytes : int or None
        The bytes that the present phase expects, or None if they are unknown.
    came : str
        A text about the bytes that arrived in the phase and their sources, which is empty if they are unknown.
    """

    name: str
    stage: int | None
    parity: int
    barrier: Barrier
    expected_bytes: int | None = None
    came: str = ""

    def __str__(self) -> str:
        stage = "" if self.stage is None else f"stage {self.stage} of "
        return f"{stage}{self.name}, parity {self.parity}: {self.state}"

    @property
    def state(self) -> str:
        """The arrivals and bytes that the barrier has received, and the arrivals and bytes that are missing."""
        return ", ".join(filter(None, (self._arrivals, self._bytes)))

    @property
    def _arrivals(self) -> str:
        missing, count = self.barrier.pending_count, self.barrier.expected_count
        if missing not in (0, count):
            return f"{missing} of its {count} arrivals {_are(missing)} missing"
        if count == 1:
            return "its one arrival is missing" if missing else "its one arrival came"
        return f"none of its {count} arrivals came" if missing else f"its {count} arrivals came"

    @property
    def _bytes(self) -> str:
        missing, expected = self.barrier.tx_count, self.expected_bytes
        # While arrivals are pending, a thread may still add to the expected bytes.
        is_known = expected and not self.barrier.pending_count
        if missing > 0:
            of = f" of {expected:,}" if is_known else ""
            return f"{missing:,}{of} bytes are missing"
        if missing < 0:
            than = f"the {expected:,} that were expected" if is_known else "expected"
            return f"{-missing:,} more bytes came than {than}"
        return ""

    @property
    def cause(self) -> str:
        """The probable cause of the wait."""
        missing, count, tx = self.barrier.pending_count, self.barrier.expected_count, self.barrier.tx_count
        if tx < 0 and missing:
            return "bytes arrived, but no thread has called arrive_expect_tx() in this phase: call it in each phase"
        if tx < 0:
            return "expect_tx announces fewer bytes than the copies deliver: pass the sum of the copies' bytes"
        if tx and missing:
            return "bytes are expected, and not all threads have arrived: expect_tx() by itself is not an arrival"
        if tx and tx == self.expected_bytes:
            return "no copy has delivered bytes: none was issued in this phase, or it names another barrier"
        if tx:
            return "expect_tx announces more bytes than the copies deliver: a copy is missing, or its box is smaller"
        if missing == count:
            return (
                "no thread arrived in this phase: check the parity of the wait, and the threads that should arrive "
                "(expect_tx() by itself is not an arrival)"
            )
        return f"init() expects {count} arrivals in each phase, and {count - missing} came"

    @property
    def rank(self) -> int:
        """The rank of the wait as an explanation of the hang.

        A wait for missing bytes ranks first, then a wait for some of the arrivals, and last a wait for all arrivals.
        """
        missing, count = self.barrier.pending_count, self.barrier.expected_count
        return 0 if self.barrier.tx_count else 1 if missing < count else 2


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """A wait at a barrier that counts threads, which is ``__syncthreads()``, or a named, cluster or warp barrier.

    Attributes
    ----------
    name : str
        The name of the barrier, such as ``"barrier 1 of the CTA"``.
    missing : str
        The threads that are missing, such as ``"128 of 256 threads are missing"``.
    cause : str
        The probable cause of the wait.
    """

    name: str
    missing: str
    cause: str = "every thread in the barrier's count must reach it: check the count and the branches before it"
    rank: int = 3  # Threads at a barrier have the last rank, because they usually wait for threads that hang elsewhere.

    def __str__(self) -> str:
        return f"{self.name}: {self.missing}"


@dataclass(frozen=True, slots=True)
class Waiter:
    """The threads that have the same wait.

    Attributes
    ----------
    blocks : tuple of tuple of int
        The ``blockIdx`` of each block.
    threads : tuple of int
        The threads of each block, numbered with x first.
    place : str
        The file and line of the wait, such as ``"gemm.cu:87"``, or an empty text if they are unknown.
    awaits : MbarrierWait or BarrierWait
    """

    blocks: tuple[_Extents, ...]
    threads: tuple[int, ...]
    place: str
    awaits: MbarrierWait | BarrierWait

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        verb = "waits" if _is_one(self.threads) else "wait"
        return f"{_blocks(self.blocks)}: {_threads(self.threads)} {verb}{at} for {self.awaits}"


@dataclass(frozen=True, slots=True)
class Hang:
    """A kernel whose threads wait for arrivals or bytes that never come.

    Attributes
    ----------
    waiters : tuple of Waiter
        The waiting threads, such as producers and consumers, by block and thread.
    kernel : str
        The name of the kernel, or an empty text if it is unknown.
    maps : mapping of str to int
        The bytes of the box of each tensor map of the kernel, by the name of the parameter.
    limits : tuple of str
        The facts that are unknown, and the steps that failed.

    Examples
    --------
    >>> full = MbarrierWait("`full`", None, 0, Barrier(phase=0, pending_count=1, expected_count=2, tx_count=0))
    >>> print(Hang((Waiter(((0, 0, 0),), tuple(range(32)), "gemm.cu:87", full),), "gemm"))
    no thread of kernel gemm can go on:
      block (0, 0): warp 0 waits at gemm.cu:87 for `full`, parity 0: 1 of its 2 arrivals is missing
    probable cause: init() expects 2 arrivals in each phase, and 1 came
    """

    waiters: tuple[Waiter, ...]
    kernel: str = ""
    maps: Mapping[str, int] = field(default_factory=dict, hash=False)
    limits: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the report, which contains the waits and then the probable cause."""
        lines = [f"{each}{self._of_maps(each)}" for each in self.waiters]
        shown = lines[:_MOST_LINES]
        if len(lines) > len(shown):
            shown.append(f"and {len(lines) - len(shown)} more")
        of = f" of kernel {self.kernel}" if self.kernel else ""
        text = [f"no thread{of} can go on:", *(f"  {line}" for line in shown)]
        return "\n".join([*text, *([f"probable cause: {self.cause}"] if self.cause else []), *self.limits])

    @property
    def cause(self) -> str:
        """The probable cause in a sentence, which is empty if no wait is known."""
        if not self.waiters:
            return ""
        first = self.first.awaits
        idle = [each.awaits for each in self.waiters if isinstance(each.awaits, MbarrierWait) and each.awaits.rank == 2]
        if first.rank == 2 and len({(each.name, each.stage) for each in idle}) > 1:
            return (
                "each waits for the other, and neither has arrived: a stage is never released, init() counts fewer "
                "arrivals than occur, or their stages or parities are out of step"
            )
        return first.cause

    @property
    def first(self) -> Waiter:
        """The waiter whose wait explains the hang best."""
        return min(self.waiters, key=lambda waiter: waiter.awaits.rank)

    def _of_maps(self, waiter: Waiter) -> str:
        """Return a text about the bytes of the boxes and of the arrivals, if bytes are missing or in excess."""
        awaits = waiter.awaits
        if not isinstance(awaits, MbarrierWait):
            return ""
        missing = abs(awaits.barrier.tx_count)
        alike = {name: size for name, size in self.maps.items() if size == missing} or self.maps
        boxes = [f"the box of `{name}` delivers {size:,}" for name, size in alike.items()]
        of_maps = f": {', '.join(boxes)}" if missing and 0 < len(boxes) <= 4 else ""
        return of_maps + (f" (came: {awaits.came})" if awaits.came else "")


class KernelHang(RuntimeError):
    """The error for a kernel on the GPU whose waits have passed their deadline.

    Attributes
    ----------
    hangs : tuple of Hang
        One value for each launch that hung.
    """

    def __init__(self, hangs: tuple[Hang, ...]):
        super().__init__("\n".join(map(str, hangs)))
        self.hangs = hangs

    def __reduce__(self) -> tuple:
        """Return the values for pickle and copy."""
        return type(self), (self.hangs,)


# ---- parts of sentences ----


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _blocks(blocks: tuple[_Extents, ...]) -> str:
    """Return a text such as ``block (3, 0)``, ``blocks (0, 0) and (1, 0)`` or ``blocks (0, 0) to (3, 0), 4 in all``."""
    names = [f"({x}, {y})" if z == 0 else f"({x}, {y}, {z})" for x, y, z in blocks]
    if len(names) == 1:
        return f"block {names[0]}"
    if len(names) == 2:
        return f"blocks {names[0]} and {names[1]}"
    return f"blocks {names[0]} to {names[-1]}, {len(names)} in all"


def _is_one(threads: tuple[int, ...]) -> bool:
    return len(threads) == 1 or (len(threads) == _WARP and _whole_warps(threads))


def _whole_warps(threads: tuple[int, ...]) -> bool:
    warps = {thread // _WARP for thread in threads}
    return len(threads) == _WARP * len(warps)


def _threads(threads: tuple[int, ...]) -> str:
    """Return a text such as ``warps 0 to 3`` or ``thread 128``."""
    if not _whole_warps(threads):
        return f"thread{'' if len(threads) == 1 else 's'} {_ranges(threads)}"
    warps = tuple(sorted({thread // _WARP for thread in threads}))
    return f"warp{'' if len(warps) == 1 else 's'} {_ranges(warps)}"


def _ranges(numbers: tuple[int, ...]) -> str:
    """Return a text of ranges, such as ``0 to 31, 64``."""
    starts = [i for i, n in enumerate(numbers) if i == 0 or n != numbers[i - 1] + 1]
    parts = []
    for first, after in zip(starts, [*starts[1:], len(numbers)], strict=True):
        parts.append(str(numbers[first]) if after == first + 1 else f"{numbers[first]} to {numbers[after - 1]}")
    return ", ".join(parts[:4]) + (", ..." if len(parts) > 4 else "")
