"""The values of a timeline: tracks of warps, copies and mbarriers, and their spans."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Span", "Track"]


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
