"""Wrong uses of memory by the host, as findings. The memcheck tool of compute-sanitizer reports the same calls."""

from __future__ import annotations

from ...simulate._findings import Finding
from ...simulate._memory.global_memory import GlobalMemory
from ...simulate._ptx import Place
from .messages import Misuse

__all__ = ["misused"]

_API = "CUDA Driver API"
_NEAR_BYTES = 1 << 16
_RULES = {
    Misuse.DOUBLE_FREE: (
        "fault",
        "double free of {at}",
        "an allocation is freed once",
        "free it in one place",
    ),
    Misuse.INVALID_FREE: (
        "fault",
        "invalid free of {at}: no allocation of this kind begins there",
        "cuMemFree takes an address that cuMemAlloc or its like returned",
        "pass the first address of the allocation, to the function that belongs to the one that made it",
    ),
    Misuse.COPY_OUT_OF_BOUNDS: (
        "out-of-bounds",
        "a copy or fill by the program reaches {size} bytes at {at}",
        "all bytes of a copy lie in one allocation",
        "compare the size of the copy with that of the allocation, in bytes",
    ),
    Misuse.USE_AFTER_FREE: (
        "out-of-bounds",
        "use after free: a copy or fill by the program reaches {size} bytes at {at}",
        "memory is used until it is freed",
        "free it after its last use",
    ),
    Misuse.DESTROYED_CONTEXT: (
        "fault",
        "a launch in a context that the program has destroyed",
        "a function lives as long as the context that its module was loaded in",
        "destroy the context after its last launch",
    ),
}


def misused(misuse: Misuse, address: int, size: int, memory: GlobalMemory, place: Place | None) -> Finding:
    """Return the finding of a wrong use of memory.

    Parameters
    ----------
    misuse : Misuse
    address, size : int
        The bytes that the program passes. The size is 0 if the program frees memory.
    memory : GlobalMemory
        The memory of the simulated GPU.
    place : Place or None
        The statement of the program that uses the memory.
    """
    kind, what, rule, remedy = _RULES[misuse]
    happened = what.format(at=_described(address, memory), size=f"{size:,}")
    rule = f"{_API}: {rule}"
    return Finding(
        kind,
        "error",
        f"{happened}. {rule}. Remedy: {remedy}",
        source=() if place is None else (place,),
        rule=rule,
        remedy=remedy,
    )


def _described(address: int, memory: GlobalMemory) -> str:
    """Return a description of an address. The description names the allocation that contains the address or ends before
    the address."""
    segment, former = memory.before(address), memory.former(address)
    if segment is not None and address < segment.stop:
        offset = address - segment.start
        left = segment.stop - address
        return f"{address:#x}, byte {offset:,} of {segment.name}, {left:,} bytes before its end"
    if former is not None:
        return f"{address:#x}, byte {address - former.start:,} of {former.name}, which the program has freed"
    if segment is not None and address - segment.stop < _NEAR_BYTES:
        return f"{address:#x}, {address - segment.stop:,} bytes after the end of {segment.name}"
    return f"{address:#x}, which is not an address of the GPU's memory"
