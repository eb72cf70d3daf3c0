"""The memory that a kernel's watchdog writes in the layout of ``watchdog.cuh``, and the hangs that its records report.

A ``static_assert`` checks the layout in the header, and a test compares that layout with the layout in this module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from .._barrier_name import barrier_name
from .._waits import Extents, waiters_of
from ..barrier import decode_barrier
from ..hang import BarrierWait, Hang, MbarrierWait

__all__ = [
    "BUFFER_BYTES",
    "CAPACITY",
    "HEAD",
    "NOTE",
    "NOTES",
    "NOTES_OFFSET",
    "RECORD",
    "Watched",
    "hangs_of",
    "stuck",
]

CAPACITY = 1023
RECORD = np.dtype(
    [
        ("module", "<u8"),
        ("word", "<u8"),
        ("grid", "<u4"),
        ("block", "<u4", 3),
        ("warp", "<u4"),
        ("lanes", "<u4"),
        ("address", "<u4"),
        ("parity", "<u4"),
        ("expected_bytes", "<u4"),
        ("line", "<u4"),
        ("stage_of", "<u4"),
        ("stage", "<i4"),
        ("is_whole", "<u4"),
        ("file", "S60"),
    ]
)
HEAD = np.dtype([("count", "<u4"), ("capacity", "<u4"), ("reserved", "<u4", 30)])
BUFFER_BYTES = HEAD.itemsize + CAPACITY * RECORD.itemsize
NOTE = np.dtype([(name, "<u4") for name in ("place", "packed", "block_x", "block_y", "lanes", "clock")])
NOTE = np.dtype([("file", "<u8"), *NOTE.descr])
NOTES_OFFSET, NOTES = 32, 256 * 64
_CLUSTER, _SIDES = 255, ("", "full", "empty")
_WARP = 32


@dataclass(frozen=True, eq=False)
class Watched:
    """The facts about a kernel with a watchdog that a report needs.

    Attributes
    ----------
    kernel : str
        The name of the kernel.
    file : str
        The last part of the name of the source file.
    lines : tuple of str
        The lines of the source, or an empty tuple if they are unknown.
    maps : mapping of str to int
        The bytes of the boxes of the kernel's maps, by the name of the parameter.
    """

    kernel: str
    file: str = ""
    lines: tuple[str, ...] = ()
    maps: Mapping[str, int] = field(default_factory=dict)


def hangs_of(records: np.ndarray, modules: Mapping[int, Watched], limits: tuple[str, ...] = ()) -> tuple[Hang, ...]:
    """Return the hangs in the records.

    There is one hang for each launch that wrote records, in the order of the first record.

    Parameters
    ----------
    records : numpy.ndarray of RECORD
    modules : mapping of int to Watched
        The kernels, by the number that the host assigned to each kernel.
    limits : tuple of str
        Remarks that the function adds to each hang.
    """
    launches: dict[tuple[int, int], list[np.void]] = defaultdict(list)
    for record in records[records["is_whole"] != 0]:
        launches[int(record["module"]), int(record["grid"])].append(record)
    hangs = []
    for (module, _), found in launches.items():
        watched = modules.get(module, Watched(""))
        waiters = [
            (*_wait(record, watched), _block(record), _threads(int(record["warp"]), int(record["lanes"])))
            for record in found
        ]
        hangs.append(Hang(waiters_of(waiters), watched.kernel, watched.maps, limits))
    return tuple(hangs)


def _wait(record: np.void, watched: Watched) -> tuple[str, MbarrierWait]:
    """Return the place and the barrier of a wait."""
    file, line, side = record["file"].decode(errors="replace"), int(record["line"]), _SIDES[record["stage_of"] % 3]
    name = barrier_name(watched.lines, line, side) if file == watched.file else ""
    if not name:
        name = f"the {side + ' ' if side else ''}mbarrier at 0x{record['address']:x} of shared memory"
    barrier = decode_barrier(int(record["word"]))
    expected = int(record["expected_bytes"]) if barrier.expected_count == 1 else 0
    stage = int(record["stage"]) if side else None
    return _place(file, line), MbarrierWait(name, stage, int(record["parity"]), barrier, expected or None)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file and line else ""


def _block(record: np.void) -> Extents:
    x, y, z = map(int, record["block"])
    return x, y, z


def _threads(warp: int, lanes: int) -> set[int]:
    return {warp * _WARP + lane for lane in range(_WARP) if lanes >> lane & 1}


# ---- hardware barriers ----


def stuck(notes: np.ndarray, watched: Watched, text_at: Callable[[int], str], limits: tuple[str, ...]) -> Hang:
    """Return the hang of the warps whose notes have not changed.

    Parameters
    ----------
    notes : numpy.ndarray of NOTE
    watched : Watched
        The kernel that wrote the notes.
    text_at : callable
        The function that returns the text at an address on the device.
    """
    arrived: dict[tuple, int] = defaultdict(int)
    for note in notes:
        arrived[_barrier(note)] += int(note["lanes"]).bit_count()
    waits: list[tuple[str, BarrierWait, Extents, set[int]]] = []
    for note in notes:
        file = text_at(int(note["file"])).rpartition("/")[2] if note["file"] else ""
        of, number, threads = _barrier(note)
        awaits = _barrier_wait(number, threads, arrived[of, number, threads])
        lanes = _threads(int(note["packed"] >> 11 & 31), int(note["lanes"]))
        waits.append((_place(file, int(note["place"]) & 0xFFFFF), awaits, of, lanes))
    return Hang(waiters_of(waits), watched.kernel, watched.maps, limits)


def _barrier(note: np.void) -> tuple[Extents, int, int]:
    """Return the block, the number of the barrier, and the number of threads that the barrier counts."""
    block = int(note["block_x"]), int(note["block_y"]), int(note["packed"] >> 16)
    return block, int(note["place"] >> 20 & 0xFF), int(note["packed"] & 0x7FF)


def _barrier_wait(number: int, threads: int, arrived: int) -> BarrierWait:
    if number == _CLUSTER:
        return BarrierWait("the cluster's barrier", "not all threads of the cluster have arrived")
    missing = f"{threads - arrived} of {threads} threads are missing" if threads else "not all its threads have arrived"
    return BarrierWait(f"barrier {number} of the CTA", missing)
