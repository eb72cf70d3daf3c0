"""The two files of a captured launch.

The first file contains the launch and the memory before the launch. The second file contains the memory that the GPU
has changed.

The file ``library/captures.c`` writes both files. Each file is a sequence of parts. A part consists of a tag of 8
bytes, a size of 8 bytes, and its content. A program may write arbitrary bytes into the folder of its session, so the
reader checks every size, and the total of the sizes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._budget import PARAMETER_BYTES, RECORDED_BYTES, VARIABLES
from ...simulate._config import Config
from ..launches import MemorySegment

__all__ = ["Capture", "Outcome", "read_capture", "read_outcome"]

_LAUNCH, _BLOCK, _PLACES, _STACK, _VARIABLE, _MEMORY, _RESULT, _CHANGED = range(1, 9)
_PART = struct.Struct("<QQ")
_FIXED = struct.Struct("<Q11I4x")
_COOPERATIVE, _PROGRAMMATIC = 1, 2
_MOST_PARTS = 1 << 17
_MOST_FRAMES = 64


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured launch before it runs.

    Attributes
    ----------
    function : int
        The number of the kernel in the kernel's process.
    config : Config
    arguments : tuple of bytes
    stack : tuple of (str, int, str)
        The file, line and function of each Python frame, with the innermost frame first.
    variables : mapping of str to (int, int)
        The address and the size of each variable of the module.
    memory : tuple of MemorySegment
        The segments by ascending address.
    """

    function: int
    config: Config
    arguments: tuple[bytes, ...] = field(repr=False)
    stack: tuple[tuple[str, int, str], ...] = ()
    variables: dict[str, tuple[int, int]] = field(default_factory=dict)
    memory: tuple[MemorySegment, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a launch on the GPU.

    Attributes
    ----------
    result : int
        The ``CUresult`` of the launch.
    seconds : float
    changed : tuple of MemorySegment
    """

    result: int
    seconds: float
    changed: tuple[MemorySegment, ...] = ()


def read_capture(path: Path) -> Capture:
    """Read the first file of a captured launch.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is damaged.
    """
    fixed, block, places, stack = b"", b"", b"", b"[]"
    variables: dict[str, tuple[int, int]] = {}
    memory: list[MemorySegment] = []
    for tag, data in _parts(path):
        if tag == _MEMORY:
            memory.append(_segment(data))
        elif tag == _VARIABLE and len(variables) < VARIABLES:
            name = data[16:].decode("utf-8", "replace")
            variables[name] = struct.unpack_from("<QQ", data)
        elif tag == _LAUNCH:
            fixed = data
        elif tag == _BLOCK:
            block = data
        elif tag == _PLACES:
            places = data
        elif tag == _STACK:
            stack = data
    function, config = _launch(fixed)
    ordered = tuple(sorted(memory, key=lambda each: each.address))
    return Capture(function, config, _arguments(block, places), _stack(stack), variables, ordered)


def read_outcome(path: Path) -> Outcome:
    """Read the second file of a captured launch.

    Raises
    ------
    OSError, ValueError
        As for :func:`read_capture`.
    """
    result, nanoseconds, changed = None, 0, []
    for tag, data in _parts(path):
        if tag == _RESULT and len(data) == 16:
            result, nanoseconds = struct.unpack("<QQ", data)
        elif tag == _CHANGED and len(data) >= 8:
            changed.append(MemorySegment(struct.unpack_from("<Q", data)[0], data[8:]))
    if result is None:
        raise ValueError(f"{path.name} has no result")
    return Outcome(result, nanoseconds / 1e9, tuple(sorted(changed, key=lambda each: each.address)))


def _parts(path: Path) -> Iterator[tuple[int, bytes]]:
    size = path.stat().st_size
    if size > RECORDED_BYTES:
        raise ValueError(f"{path.name} has {size} bytes; at most {RECORDED_BYTES} are read")
    with open(path, "rb") as file:
        for _ in range(_MOST_PARTS):
            head = file.read(_PART.size)
            if not head:
                return
            if len(head) < _PART.size:
                break
            tag, length = _PART.unpack(head)
            data = file.read(length) if length <= size else b""
            if len(data) < length:
                break
            yield tag, data
    raise ValueError(f"{path.name} is damaged: its last part is not whole, or it has too many parts")


def _launch(data: bytes) -> tuple[int, Config]:
    if len(data) != _FIXED.size:
        raise ValueError(f"the head of a captured launch has {len(data)} bytes, but it must have {_FIXED.size}")
    function, *numbers, shared, flags = _FIXED.unpack(data)
    grid, block, cluster = (tuple(numbers[at : at + 3]) for at in (0, 3, 6))
    if all(cluster):
        if any(extent % by for extent, by in zip(grid, cluster, strict=True)):
            raise ValueError(f"the grid {grid} is not a multiple of the cluster {cluster}")
        grid = tuple(extent // by for extent, by in zip(grid, cluster, strict=True))
    return function, Config(
        grid=grid,
        block=block,
        cluster=cluster if all(cluster) else None,
        shmem_size=shared,
        is_cooperative=bool(flags & _COOPERATIVE),
        programmatic_stream_serialization=bool(flags & _PROGRAMMATIC),
    )


def _arguments(block: bytes, places: bytes) -> tuple[bytes, ...]:
    found = [*struct.iter_unpack("<II", places[: len(places) // 8 * 8])]
    if len(block) > PARAMETER_BYTES or any(at + size > len(block) for at, size in found):
        raise ValueError(f"the {len(found)} parameters of a captured launch exceed its block of {len(block)} bytes")
    return tuple(block[at : at + size] for at, size in found)


def _stack(data: bytes) -> tuple[tuple[str, int, str], ...]:
    frames: Any = json.loads(data.decode("utf-8", "replace"))
    return tuple((str(file), int(line), str(name)) for file, line, name in frames[:_MOST_FRAMES])


def _segment(data: bytes) -> MemorySegment:
    if len(data) < 16:
        raise ValueError("a part with memory has no address")
    address, is_block = struct.unpack_from("<QQ", data)
    kind = "a tensor's memory in torch's allocator" if is_block else "an allocation"
    return MemorySegment(address, data[16:], f"{kind}, {len(data) - 16} bytes")
