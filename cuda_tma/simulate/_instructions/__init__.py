"""Instructions that touch more than registers: memory, barriers, other threads, and where a thread goes on."""

from . import (  # each enters its rows into the table
    addresses,
    atomics,
    barriers,
    bulk,
    calls,
    control,
    cp_async,
    elect,
    fences,
    load_store,
    matrix,
    mbarrier,
    remote,
    tensor,
    tensormap,
    wgmma,
    wmma,
)
from ._table import TABLE, Entry

__all__ = [
    "TABLE",
    "Entry",
    "addresses",
    "atomics",
    "barriers",
    "bulk",
    "calls",
    "control",
    "cp_async",
    "elect",
    "fences",
    "load_store",
    "matrix",
    "mbarrier",
    "remote",
    "tensor",
    "tensormap",
    "wgmma",
    "wmma",
]
