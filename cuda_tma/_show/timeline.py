"""The timeline of a launch: the activity of its warps, copies and mbarriers, as values and as pictures."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsIndex

from .._files import write
from .._given import shown
from .timeline_html import timeline_html
from .timeline_part import part_around
from .timeline_svg import Chart, timeline_svg
from .tracks import Track

__all__ = ["UNITS", "Timeline"]

# _MOST limits the numbers of CTAs and pixels of a picture, because a larger picture may need too much memory.
_MOST = 100_000
# UNITS explains the unit of time in the picture.
UNITS = (
    "Time is counted in steps, not in nanoseconds: an instruction of a warp is one, a copy takes {copy_steps:,}, and a "
    "product of N columns N / 2. Warps run in parallel, and wait only for synchronization in the kernel."
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The activity of a launch on the simulator, which ``gpu.launch(..., trace=True).timeline()`` returns.

    The timeline counts time in steps. Each warp has its own clock, which advances by one with each instruction, and to
    the end of each wait. The timeline has no model of caches, of the scheduler or of the clock rate. The timeline shows
    dependencies and concurrency, not durations on a GPU.

    Attributes
    ----------
    kernel : str
    tracks : tuple of Track
        The tracks of warps, copies and mbarriers. The CTAs follow one another.
    steps : int
        The step at which the last track ends.
    copy_steps : int
        The assumed duration of a copy, in steps.
    """

    kernel: str
    tracks: tuple[Track, ...]
    steps: int
    copy_steps: int

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """The ``blockIdx`` of every CTA, in the order of the tracks."""
        return tuple(dict.fromkeys(track.block for track in self.tracks))

    @property
    def units(self) -> str:
        """The explanation of the timeline's unit of time."""
        return UNITS.format(copy_steps=self.copy_steps)

    def title(self, blocks: int) -> str:
        """Return the title of a picture of `blocks` CTAs."""
        ctas = len(self.blocks)
        first = f"the first{f' {blocks}' if blocks > 1 else ''} of {ctas} CTAs"
        shown = first if ctas > blocks else f"{ctas} CTA{'s' * (ctas > 1)}"
        return f"{self.kernel}: {shown}, {self.steps:,} steps"

    def of_block(self, block: tuple[int, int, int]) -> Iterator[Track]:
        """Return the tracks of one CTA."""
        return (track for track in self.tracks if track.block == block)

    def around(self, sources: Collection[str], block: tuple[int, int, int] | None = None) -> Timeline:
        """Return the part of one CTA around the last execution of each statement.

        Step 0 of the result is the first step of the part.

        Parameters
        ----------
        sources : collection of str
            ``file:line`` of statements. If no span belongs to the statements, the part contains the first steps.
        block : tuple of int, optional
            The ``blockIdx`` of the CTA (default, and if the timeline has no such CTA: the first CTA).

        Returns
        -------
        Timeline
        """
        chosen = block if block in self.blocks else next(iter(self.blocks), None)
        tracks = [track for track in self.tracks if track.block == chosen]
        part = part_around(tracks, sources, self.steps)
        steps = f", from step {part.begin:,}" if part.begin else ""
        return replace(self, kernel=f"{self.kernel}{steps}", tracks=part.tracks, steps=part.steps)

    def svg(self, *, blocks: int = 2, width: int = 1200, marked: Collection[str] = (), has_styles: bool = True) -> str:
        """Return a picture, in light or dark colors as its reader prefers.

        Parameters
        ----------
        blocks : int
            The largest number of CTAs. The picture shows the first CTAs.
        width : int
            The width in pixels.
        marked : collection of str
            ``file:line`` of statements whose spans have an outline.
        has_styles : bool
            Whether the picture contains its styles. A page with several pictures needs them once.

        Returns
        -------
        str
        """
        _check("blocks", blocks, 1)
        _check("width", width, 400)
        return timeline_svg(self._chart(blocks), width, frozenset(marked), has_styles=has_styles)

    def html(self, *, blocks: int = 8) -> str:
        """Return a page with zoom and scrolling, and with details of the focused element. The page needs no network.

        Parameters
        ----------
        blocks : int
            The largest number of CTAs. The page shows the first CTAs.

        Returns
        -------
        str
        """
        _check("blocks", blocks, 1)
        return timeline_html(self._chart(blocks))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file ``.svg``, or the page to a file ``.html``.

        Raises
        ------
        ValueError
            If the file name has another suffix.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            raise ValueError(f"{path} is not the name of a timeline; end the name in .svg or .html")
        write(path, self.svg() if path.suffix == ".svg" else self.html())

    def _chart(self, blocks: int) -> Chart:
        """Return the first CTAs as a chart."""
        tracks = tuple(track for block in self.blocks[:blocks] for track in self.of_block(block))
        return Chart(self.title(blocks), self.units, self.steps, tracks)


def _check(name: str, value: object, least: int) -> None:
    """Refuse a number of CTAs or pixels with which no picture can be drawn."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} is {shown(value)}; pass an integer")
    if not least <= operator.index(value) <= _MOST:
        raise ValueError(f"{name} is {shown(value)}; pass {least} to {_MOST}")
