"""The outcome of a launch on a GPU, compared with the outcome on the simulator.

The comparison is byte for byte. If PTX leaves the result of an instruction undefined, elements may differ within a
bound. The bound limits the relative difference: the difference divided by the larger of the element's magnitude and the
root mean square of the written elements.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...simulate._findings import Finding, message_of
from ...simulate._memory.global_memory import Segment
from .recorded import Hardware, MemorySegment, RecordedLaunch

__all__ = ["BOUNDS", "Comparison", "compared", "open_results"]

EQUAL, WITHIN, DIFFERS, NOT_COMPARED = "equal", "within the bound", "differs", "not compared"
KIND = "hardware-difference"
_RULE = "the memory after a launch is that of the GPU, except for results that PTX leaves open"
_REMEDY = (
    "run the kernel under more schedules (--schedules): a race gives several results; without a race, record the "
    "launch (--record) and report it as an error of the simulator"
)
# The PTX ISA does not define every bit of the results of some instructions. PTX contains such an instruction if the PTX
# matches each pattern of an entry.
_FLOAT = r"(?:f16x2|bf16x2|f16|bf16|f32x2|f32|f64)\b"
_OPEN: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "approximate functions": (re.compile(r"\b(?:div|rcp|sqrt|rsqrt|sin|cos|lg2|ex2|tanh)\.(?:approx|full)\b"),),
    "the order of atomic additions of floats": (
        re.compile(rf"\b(?:atom|red|multimem|cp\.reduce)\.(?:[\w.:]{{0,120}}\.)?add(?:\.[\w.:]{{0,40}})?\.{_FLOAT}"),
    ),
    "products and sums that ptxas may fuse": (
        re.compile(rf"\bmul(?:\.ftz)?(?:\.sat)?\.{_FLOAT}"),
        re.compile(rf"\b(?:add|sub)(?:\.ftz)?(?:\.sat)?\.{_FLOAT}"),
    ),
}
BOUNDS: Mapping[str, float] = {"bf16": 2.0**-6, "f16": 2.0**-8, "f32": 2.0**-10, "f64": 2.0**-20}
_BESIDE_NARROW = 2.0**-14  # The bound applies to results in f32 of a kernel that also computes with narrower types.
# _LEAST is the least normal f32. Data with a smaller scale consists of integers, which are subnormal as f32.
_LEAST = 2.0**-126
_NARROW = {"bf16": re.compile(r"\.bf16"), "f16": re.compile(r"\.f16")}
_WIDE = {"f64": re.compile(r"\.f64")}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the simulator's memory with the memory of a GPU.

    Attributes
    ----------
    result : str
        ``"equal"``, ``"within the bound"``, ``"differs"`` or ``"not compared"``.
    details : str
    """

    result: str
    details: str = ""

    def __str__(self) -> str:
        return f"{self.result}: {self.details}" if self.details else self.result

    def finding(self, name: str) -> Finding | None:
        """Return advice if the outcomes of the GPU and the simulator differ."""
        if self.result != DIFFERS:
            return None
        happened = f"the GPU ({name}) and the simulator differ: {self.details}"
        return Finding(KIND, "advice", message_of(happened, _RULE, _REMEDY), rule=_RULE, remedy=_REMEDY)


def open_results(ptx: str) -> tuple[str, ...]:
    """Return the reasons why bits of a GPU may differ from the simulator's bits. The result is empty if PTX defines
    each bit.
    """
    return tuple(name for name, patterns in _OPEN.items() if all(each.search(ptx) for each in patterns))


def compared(launch: RecordedLaunch, hardware: Hardware, memory: Iterable[Segment]) -> Comparison:
    """Compare the memory after a simulated launch with the memory of a GPU after the same launch."""
    if hardware.result:
        return Comparison(
            DIFFERS, f"the launch on the GPU ends with error {hardware.result}, the simulated one ends well"
        )
    simulated = {segment.start: segment.bytes for segment in memory}
    reasons, worst, used = open_results(launch.ptx), 0.0, ""
    for before, gpu in _after(launch.memory, hardware.changed):
        ours = simulated[before.address]
        unequal = np.flatnonzero(gpu != ours)
        if not unequal.size:
            continue
        found = _closeness(gpu, ours, before, unequal, launch.ptx) if reasons else None
        if found is None:
            return Comparison(DIFFERS, _described(before, gpu, ours, unequal))
        worst, used = max((worst, used), found)
    if not used:
        return Comparison(EQUAL)
    return Comparison(WITHIN, f"relative differences up to {worst:.1e} as {used} ({', '.join(reasons)})")


def _after(
    memory: Iterable[MemorySegment], changed: Iterable[MemorySegment]
) -> Iterator[tuple[MemorySegment, np.ndarray]]:
    """Yield each segment of memory with its bytes after the launch on the GPU."""
    left = sorted(changed, key=lambda each: each.address)
    starts = [each.address for each in left]
    for segment in memory:
        data = np.frombuffer(bytearray(segment.data), np.uint8)
        stop = segment.address + len(data)
        for each in left[bisect_left(starts, segment.address) : bisect_left(starts, stop)]:
            at = each.address - segment.address
            part = np.frombuffer(each.data, np.uint8)[: len(data) - at]
            data[at : at + len(part)] = part
        yield segment, data


def _closeness(
    gpu: np.ndarray, ours: np.ndarray, before: MemorySegment, unequal: np.ndarray, ptx: str
) -> tuple[float, str] | None:
    """Return the largest relative difference, and the type for which all elements are within the type's bound."""
    narrow = [name for name, pattern in _NARROW.items() if pattern.search(ptx)]
    types = [*narrow, "f32", *(name for name, pattern in _WIDE.items() if pattern.search(ptx))]
    old = np.frombuffer(before.data, np.uint8)
    for name in types:
        bound = _BESIDE_NARROW if name == "f32" and narrow else BOUNDS[name]
        found = _largest(gpu, ours, old, unequal, name)
        if found <= bound:
            return found, name
    return None


def _largest(gpu: np.ndarray, ours: np.ndarray, old: np.ndarray, unequal: np.ndarray, name: str) -> float:
    size = {"f64": 8, "f32": 4}.get(name, 2)
    whole = len(gpu) // size * size
    if unequal[-1] >= whole:
        return np.inf
    elements = np.unique(unequal // size)
    written = np.flatnonzero((gpu[:whole] != old[:whole]).reshape(-1, size).any(1))
    with np.errstate(all="ignore"):
        a, b = (_numbers(data[:whole], name)[elements] for data in (gpu, ours))
        known = _numbers(gpu[:whole], name)[written]
        known = known[np.isfinite(known)]
        scale = float(np.sqrt(np.mean(known**2))) if known.size else 0.0
        both_nan = np.isnan(a) & np.isnan(b)
        divisor = np.maximum(np.maximum(np.abs(a), np.abs(b)), max(scale, _LEAST))
        relative = np.where(both_nan, 0.0, np.abs(a - b) / divisor)
    return float(np.max(np.where(np.isfinite(relative), relative, np.inf)))


def _numbers(data: np.ndarray, name: str) -> np.ndarray:
    if name == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return data.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[name]).astype(np.float64)


def _described(before: MemorySegment, gpu: np.ndarray, ours: np.ndarray, unequal: np.ndarray) -> str:
    first = int(unequal[0])
    at = first // 4 * 4
    here, there = (data[at : at + 4].tobytes().hex() for data in (gpu, ours))
    name = before.name or f"memory, {len(before.data)} bytes"
    return (
        f"{unequal.size:,} bytes of {name}, the first at byte {first:,} ({before.address + first:#x}): "
        f"the bytes from {at:,} are {here} on the GPU, {there} on the simulator"
    )
