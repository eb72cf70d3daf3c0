"""The conversion of a recording to a :class:`Timeline`, in which equal warps share a track."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePath

from ..._compile.plain_names import plain_name
from ..._show.timeline import Timeline
from ..._show.tracks import Span, Track
from .._kernel import Kernel
from .._ptx import Instruction
from .._sync.rings import own_place, ring_places
from .copies import COPY_STEPS, Copy, Product
from .mbarriers import Recorded
from .recorder import Life, Recorder, Wait
from .tensor_pipes import TensorOperation

__all__ = ["timeline_of"]

_Block = tuple[int, int, int]


def timeline_of(recorder: Recorder, kernel: Kernel) -> Timeline:
    """Return the timeline of a launch that has ended."""
    end = recorder.end()
    words = _Words(recorder, kernel)
    by_block: dict[_Block, list[Track]] = defaultdict(list)
    for track in (*_warps(recorder, words, end), *_copies(recorder, words), *_mbarriers(recorder, words, end)):
        by_block[track.block].append(track)
    tracks = [track for block in sorted(by_block, key=lambda block: block[::-1]) for track in by_block[block]]
    return Timeline(words.kernel_name, tuple(tracks), end, COPY_STEPS)


class _Words:
    """The names of barriers, memory and statements in a timeline, from the source of the kernel."""

    def __init__(self, recorder: Recorder, kernel: Kernel):
        self._parts = recorder.parts
        self._pitch = self._parts.memory.shared_pitch
        self._lines = kernel.source.splitlines()
        self.kernel_name = plain_name(kernel.name)
        made = {each.position: each.made for each in recorder.mbarriers}
        self._rings = ring_places(made, self._pitch)

    def mbarrier(self, position: int) -> str:
        """Return the name of an mbarrier, such as ``full[2]`` for a Pipeline, or the name of the variable."""
        if (ring := self._rings.get(position)) is not None:
            return f"{ring.side}[{ring.stage}]"
        return self.shared(position)

    def shared(self, position: int) -> str:
        """Return the name of a position in `Memory.shared`."""
        return self._parts.program.shared_name(position % self._pitch).replace("`", "")

    def where(self, instruction: Instruction | None) -> str:
        """Return the place of an instruction, such as ``gemm.cu:61``."""
        place = own_place(instruction)
        return f"{PurePath(place.file).name}:{place.line}" if place else ""

    def statement(self, instruction: Instruction | None) -> str:
        """Return the place of an instruction, with the text of the line if it is in the source of the kernel."""
        place = own_place(instruction)
        if place is None:
            return ""
        own = self._lines and PurePath(place.file).parent.name != "cuda_tma" and 0 < place.line <= len(self._lines)
        return f"{self.where(instruction)}  {self._lines[place.line - 1].strip() if own else ''}".strip()


# ---- warps ----


def _warps(recorder: Recorder, words: _Words, end: int) -> Iterator[Track]:
    """Yield the tracks of warps: one for all warps of a CTA with equal waits, and one for each warpgroup with wgmma."""
    alike: dict[object, list[Life]] = defaultdict(list)
    for life in recorder.lives:
        group = life.number // 4 if "wgmma" in life.does else None
        path = tuple(id(by) for by, _ in groupby(life.waits, key=lambda wait: wait.instruction))
        alike[life.block, group, frozenset(life.does), path].append(life)
    for lives in sorted(alike.values(), key=lambda lives: lives[0].number):
        yield _track_of(lives, words, end)


def _track_of(lives: list[Life], words: _Words, end: int) -> Track:
    first = lives[0]
    who = _numbered([life.number for life in lives])
    waits = (_wait(wait, who, words) for wait in first.waits if wait.end > wait.begin)
    products = (_product(product, words) for product in first.products)
    name = f"{who}: {', '.join(first.does)}" if first.does else who
    ends = [end if life.end is None else life.end for life in lives]
    return Track("warps", name, first.block, first.begin, max(ends), _in_order((*waits, *products)))


def _numbered(numbers: list[int]) -> str:
    """Return a text for numbers of warps, such as ``warps 0-3, 8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)
    return f"warp{'s' * (len(numbers) > 1)} {said}"


def _wait(wait: Wait, who: str, words: _Words) -> Span:
    awaits = wait.awaits if isinstance(wait.awaits, str) else words.mbarrier(wait.awaits)
    verb = "wait" if who.startswith("warps") else "waits"
    how_long = "never completes" if wait.in_vain else f"{wait.end - wait.begin:,} steps, {_steps(wait)}"
    detail = _lines(f"{who} {verb} for {awaits}: {how_long}", words.statement(wait.instruction))
    return Span("wait", wait.begin, wait.end, awaits, detail, words.where(wait.instruction), in_vain=wait.in_vain)


def _product(product: Product | TensorOperation, words: _Words) -> Span:
    kind = product.instruction.opcode[0]
    name = product.name if isinstance(product, TensorOperation) else "m{}n{}k{}".format(*product.shape)
    detail = _lines(f"{kind} {name}: {_steps(product)}", words.statement(product.instruction))
    return Span(kind, product.begin, product.end, name, detail, words.where(product.instruction))


# ---- copies ----


def _copies(recorder: Recorder, words: _Words) -> Iterator[Track]:
    """Yield the tracks of copies to shared memory and of copies from shared memory."""
    by_way: dict[tuple[_Block, str], list[Span]] = defaultdict(list)
    for copy in sorted(recorder.copies, key=lambda copy: copy.kind in ("store", "reduce")):
        name = {"load": "TMA loads", "copy": "copies"}.get(copy.kind, "TMA stores")
        by_way[copy.block, name].append(_copy(copy, words))
    for (block, name), found in by_way.items():
        spans = _in_order(found)
        yield Track("copies", name, block, spans[0].begin, max(span.end for span in spans), spans)


def _copy(copy: Copy, words: _Words) -> Span:
    named = copy.map_name or {"copy": "bytes"}.get(copy.kind, "tensor")
    at = "" if copy.box is None else "{" + ", ".join(map(str, copy.box.coordinates)) + "}"
    label = f"{named} {at}".strip()
    what = {"load": "load from", "store": "store to", "reduce": "reduction into", "copy": "copy of"}[copy.kind]
    whom = f", {copy.times} times" if copy.times > 1 and copy.kind == "copy" else ""
    whom = f", to each of {copy.times} CTAs" if copy.times > 1 and copy.kind == "load" else whom
    lines = [f"{what} {label}: {copy.size_bytes:,} bytes{whom}"]
    if copy.position is not None:
        lines.append(f"shared memory: {words.shared(copy.position)}")
    if copy.mbarrier is not None:
        lines.append(f"completes on the mbarrier {words.mbarrier(copy.mbarrier)}")
    lines += [f"issued at step {copy.begin:,}, arrived at {copy.end:,}", words.statement(copy.instruction)]
    where = words.where(copy.instruction)
    return Span(copy.kind, copy.begin, copy.end, label, _lines(*lines), where, copy.size_bytes)


# ---- mbarriers ----


def _mbarriers(recorder: Recorder, words: _Words, end: int) -> Iterator[Track]:
    def place(barrier: Recorded) -> tuple[object, ...]:
        return barrier.block, barrier.position

    for barrier in sorted(recorder.mbarriers, key=place):
        spans = tuple(_phases(barrier, words, end))
        name = words.mbarrier(barrier.position)
        yield Track("mbarrier", name, barrier.block, barrier.phases[0].begin, end, spans, tuple(barrier.levels()))


def _phases(barrier: Recorded, words: _Words, end: int) -> Iterator[Span]:
    name = words.mbarrier(barrier.position)
    for number, phase in enumerate(barrier.phases):
        if phase.end is None and not phase.changes:
            continue  # The timeline omits an incomplete phase without arrivals.
        came = sum(size for _, _, size in phase.changes if size > 0)
        arrived = sum(arrivals for _, arrivals, _ in phase.changes)
        counts = f"{arrived} of {barrier.count} arrivals" + (f", {came:,} bytes" if came else "")
        last = end if phase.end is None else phase.end
        fate = "not complete" if phase.end is None else f"complete at step {last:,}"
        detail = _lines(f"{name}, phase {number} (parity {number & 1}): {counts}", fate)
        yield Span("phase", phase.begin, last, str(number), detail, size_bytes=came, in_vain=phase.end is None)


def _steps(span: Wait | Product | TensorOperation) -> str:
    return f"{span.begin:,} to {span.end:,}"


def _in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.begin, span.end, span.label)))


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)
