"""The requests of the C library as Python values, whose layouts equal those in ``libcuda/driver.h``."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Function", "Kind", "Launch", "Memory", "Misuse", "device_reply", "launch_of", "module_reply"]


class Kind(IntEnum):
    """The kinds of requests from the driver library."""

    DEVICE = 1
    ALLOCATED = 2
    FREED = 3
    LOAD = 4
    PLACE = 5
    UNLOAD = 6
    LAUNCH = 7
    TENSOR_MAP = 8
    ABSENT = 9
    MISUSE = 10
    SOURCE = 11
    ADDRESS = 12
    PRIVATE = 13
    SKIP = 14
    LINK = 15


class Memory(IntEnum):
    """The kinds of memory in the driver library."""

    DEVICE = 0
    POOL = 1
    HOST = 2
    MANAGED = 3
    REGISTERED = 4
    VARIABLE = 5
    VIRTUAL = 6


class Misuse(IntEnum):
    """The wrong uses of memory that the driver library reports."""

    DOUBLE_FREE = 1
    INVALID_FREE = 2
    COPY_OUT_OF_BOUNDS = 3
    USE_AFTER_FREE = 4
    DESTROYED_CONTEXT = 5


_LAUNCH = struct.Struct("<Q12I")
_COOPERATIVE, _PROGRAMMATIC = 1, 2
_DEVICE = struct.Struct("<Q64s")
_ATTRIBUTES = 160
_FUNCTION_ATTRIBUTES = 16


class Launch(NamedTuple):
    """A launch as in the driver's interface, with the grid in CTAs.

    Attributes
    ----------
    module, function : int
    grid, block, cluster : tuple of int
        The extents in CTAs, where the cluster contains zeros if the launch has no cluster.
    shared_bytes : int
    is_cooperative, is_programmatic : bool
    parameters : bytes
    """

    module: int
    function: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared_bytes: int
    is_cooperative: bool
    is_programmatic: bool
    parameters: bytes


class Function(NamedTuple):
    """A function of a module, as the driver library stores it.

    Attributes
    ----------
    name : str
    attributes : mapping of int to int
        The values of the attributes, by ``CUfunction_attribute``.
    parameters : sequence of (int, int)
        The offset and the size of each parameter, in bytes.
    """

    name: str
    attributes: Mapping[int, int]
    parameters: Sequence[tuple[int, int]]


def launch_of(data: bytes) -> Launch:
    """Return the launch that a request contains."""
    module, function, flags, *numbers, shared = _LAUNCH.unpack_from(data)
    grid, block, cluster = (tuple(numbers[at : at + 3]) for at in (0, 3, 6))
    flagged = bool(flags & _COOPERATIVE), bool(flags & _PROGRAMMATIC)
    return Launch(module, function, grid, block, cluster, shared, *flagged, data[_LAUNCH.size :])


def device_reply(total_bytes: int, name: str, attributes: Mapping[int, int]) -> bytes:
    """Return the bytes of the C structure ``struct device``."""
    values = (attributes.get(number, 0) for number in range(_ATTRIBUTES))
    return _DEVICE.pack(total_bytes, name.encode()[:63]) + struct.pack(f"<{_ATTRIBUTES}i", *values)


def module_reply(number: int, functions: Sequence[Function], variables: Mapping[str, int]) -> bytes:
    """Return the bytes that describe a module. The argument `variables` contains the size of each variable."""
    parts = [struct.pack("<QII", number, len(functions), len(variables))]
    for function in functions:
        values = (function.attributes.get(each, 0) for each in range(_FUNCTION_ATTRIBUTES))
        parts += [_name(function.name), struct.pack(f"<{_FUNCTION_ATTRIBUTES}i", *values)]
        parts.append(struct.pack("<I", len(function.parameters)))
        parts += [struct.pack("<II", *each) for each in function.parameters]
    parts += [_name(name) + struct.pack("<Q", size) for name, size in variables.items()]
    return b"".join(parts)


def _name(text: str) -> bytes:
    data = text.encode()[:0xFFFF]
    return struct.pack("<H", len(data)) + data
