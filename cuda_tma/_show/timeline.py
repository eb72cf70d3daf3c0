"""The timeline of a launch: what its warps, its copies and its mbarriers do over time, as values and as pictures."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

from .._files import write
from .._given import shown

__all__ = ["UNITS", "Span", "Timeline", "Track"]

_MOST = 100_000  # CTAs or pixels: beyond that a picture takes all memory
# What a picture says of its time; the numbers are those of the recorder.
UNITS = (
    "Time is counted in steps, not in nanoseconds: an instruction of a warp is one, a copy takes {copy_steps:,}, and a "
    "wgmma of N columns N / 2. Warps run side by side, and wait for nothing but what the kernel says."
)


@dataclass(frozen=True, slots=True)
class Span:
    """Something that takes its time.

    Attributes
    ----------
    kind : str
        ``"wait"``; ``"wgmma"``; ``"load"``, ``"store"``, ``"reduce"``, ``"copy"`` of what is issued and arrives later;
        ``"phase"`` of an mbarrier.
    begin, end : int
        In steps. A wait that is in vain ends with the launch.
    label : str
        A few words, for the picture.
    detail : str
        All that is known: what hovering shows.
    source : str
        ``file:line`` of the statement; empty if the PTX has no line information.
    size_bytes : int
        That a copy moves.
    in_vain : bool
        Whether the end never came.
    """

    kind: str
    begin: int
    end: int
    label: str
    detail: str = ""
    source: str = ""
    size_bytes: int = 0
    in_vain: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """One actor of a CTA.

    Attributes
    ----------
    kind : str
        ``"warps"`` that do the same, ``"copies"`` that one CTA issues, or ``"mbarrier"``.
    name : str
    block : tuple of int
        ``blockIdx``.
    begin, end : int
        Its life, in steps.
    spans : tuple of Span
        By their begin. Copies overlap; the others do not, but that products of a warpgroup run beside its waits.
    levels : tuple of (int, int, int)
        Of an mbarrier: when, and from then on how many arrivals and bytes its phase lacks.
    """

    kind: str
    name: str
    block: tuple[int, int, int]
    begin: int
    end: int
    spans: tuple[Span, ...] = ()
    levels: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a launch on the simulator did, over time: of ``gpu.launch(..., trace=True).timeline()``.

    Time is counted in steps: each warp has its own clock, that goes on by one with each of its instructions, and to the
    end of what it waits for where that is later. No cache, no scheduler and no clock rate are in it: it shows what
    waits for what, and what runs meanwhile, not how long that takes on a GPU.

    Attributes
    ----------
    kernel : str
    tracks : tuple of Track
        CTA by CTA: warps, copies, mbarriers.
    steps : int
        When the last of them ends.
    copy_steps : int
        How long a copy was taken to be under way.
    """

    kernel: str
    tracks: tuple[Track, ...]
    steps: int
    copy_steps: int

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """``blockIdx`` of every CTA, in the order of the tracks."""
        return tuple(dict.fromkeys(track.block for track in self.tracks))

    @property
    def units(self) -> str:
        """What its time means, in words."""
        return UNITS.format(copy_steps=self.copy_steps)

    def title(self, blocks: int) -> str:
        """What a picture of so many CTAs is called."""
        ctas = len(self.blocks)
        first = f"the first{f' {blocks}' if blocks > 1 else ''} of {ctas} CTAs"
        shown = first if ctas > blocks else f"{ctas} CTA{'s' * (ctas > 1)}"
        return f"{self.kernel}: {shown}, {self.steps:,} steps"

    def of_block(self, block: tuple[int, int, int]) -> Iterator[Track]:
        """The tracks of one CTA."""
        return (track for track in self.tracks if track.block == block)

    def svg(self, *, blocks: int = 2, width: int = 1200) -> str:
        """A picture, in light and dark as its reader prefers.

        Parameters
        ----------
        blocks : int
            Of how many CTAs, at most, the first ones.
        width : int
            In pixels.

        Returns
        -------
        str
        """
        from .timeline_svg import timeline_svg

        _check("blocks", blocks, 1)
        _check("width", width, 400)
        return timeline_svg(self, blocks, width)

    def html(self, *, blocks: int = 8) -> str:
        """A page that can be zoomed and scrolled, and shows what is pointed at or has the focus; it needs no network.

        Parameters
        ----------
        blocks : int
            Of how many CTAs, at most, the first ones.

        Returns
        -------
        str
        """
        from .timeline_html import timeline_html

        _check("blocks", blocks, 1)
        return timeline_html(self, blocks)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the picture, ``.svg``, or the page, ``.html``.

        Raises
        ------
        ValueError
            If the name ends in something else.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            raise ValueError(f"{path}: a timeline is written as .svg or as .html; end the name so")
        write(path, self.svg() if path.suffix == ".svg" else self.html())


def _check(name: str, value: object, least: int) -> None:
    """Refuse a number of which no picture can be drawn."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} is {shown(value)}; give an integer")
    if not least <= operator.index(value) <= _MOST:
        raise ValueError(f"{name} is {shown(value)}; give {least} to {_MOST}")
