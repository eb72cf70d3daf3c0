"""The requests of the C library as Python values, whose layouts equal those in ``library/on_gpu.h``."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Counts", "Gpu", "Request", "counts_of", "function_reply", "gpu_of", "limits_reply", "numbers_of"]


class Request(IntEnum):
    """The kinds of requests from the library."""

    HELLO = 1
    IMAGE = 2
    FUNCTION = 3
    CODE = 4
    BEFORE = 5
    AFTER = 6
    COUNTS = 7
    GRAPHS = 8


_GPU = struct.Struct("<4i64s")
_LIMITS = struct.Struct("<QII")
_COUNTS = struct.Struct("<7Q")


class Gpu(NamedTuple):
    """The GPU on which a program runs.

    Attributes
    ----------
    compute_capability : tuple of int
    multiprocessors, driver_version : int
    name : str
    """

    compute_capability: tuple[int, int]
    multiprocessors: int
    driver_version: int
    name: str


class Counts(NamedTuple):
    """The numbers of launches of a kernel.

    Attributes
    ----------
    launches, judged : int
    alike : int
        The launches with a configuration that was already checked.
    in_graphs : int
        The launches that a stream captured into a graph.
    other_configurations : int
        The launches with configurations above the limit on checked configurations.
    not_captured : int
        The launches that were not captured, because they can access too much memory.
    nanoseconds : int
        The additional time of the checked launches.
    """

    launches: int = 0
    judged: int = 0
    alike: int = 0
    in_graphs: int = 0
    other_configurations: int = 0
    not_captured: int = 0
    nanoseconds: int = 0


def gpu_of(data: bytes) -> Gpu:
    """Return the GPU that a program's first request describes.

    Raises
    ------
    ValueError
        If the request is damaged.
    """
    major, minor, multiprocessors, version, name = _unpacked(_GPU, data)
    text = name.partition(b"\0")[0].decode("utf-8", "replace")
    return Gpu((major, minor), max(multiprocessors, 1), version, text)


def limits_reply(most_bytes: int, every: int, most_configurations: int) -> bytes:
    """Return the bytes of the limits of a session."""
    return _LIMITS.pack(most_bytes, every, most_configurations)


def function_reply(is_judged: bool, variables: Sequence[str]) -> bytes:
    """Return the reply about a kernel: whether its launches are checked, and the names of its module's variables."""
    names = b"".join(name.encode() + b"\0" for name in variables)
    return struct.pack("<II", is_judged, len(variables)) + names


def counts_of(data: bytes) -> Counts:
    """Return the counts in a request. The number of the kernel precedes the counts."""
    return Counts(*_unpacked(_COUNTS, data))


def numbers_of(data: bytes, count: int) -> tuple[int, ...]:
    """Return the integers at the beginning of a request."""
    return _unpacked(struct.Struct(f"<{count}Q"), data[: 8 * count])


def _unpacked(layout: struct.Struct, data: bytes) -> tuple:
    if len(data) != layout.size:
        raise ValueError(f"a request has {len(data)} bytes, but it must have {layout.size}")
    return layout.unpack(data)
