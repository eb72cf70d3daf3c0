"""The values of a timeline: tracks of warps, copies and mbarriers, and their spans."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Span", "Track"]


@dataclass(frozen=True, slots=True)
class Span:
    """An activity with a duration.

    Attributes
    ----------
    kind : str
        ``"wait"``; ``"wgmma"``, ``"tcgen05"``; ``"load"``, ``"store"``, ``"reduce"``, ``"copy"`` for asynchronous
        copies; ``"phase"`` of an mbarrier.
    begin, end : int
        In steps. A wait that never completes ends with the launch.
    label : str
        A few words, for the picture.
    detail : str
        All known details, which appear when the pointer is on the span.
    source : str
        ``file:line`` of the statement; empty if the PTX has no line information.
    size_bytes : int
        The bytes that a copy moves.
    in_vain : bool
        Whether the activity never ended.
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
        ``"warps"`` with the same activity, ``"copies"`` that one CTA issues, or ``"mbarrier"``.
    name : str
    block : tuple of int
        ``blockIdx``.
    begin, end : int
        Its lifetime, in steps.
    spans : tuple of Span
        In the order of their begin. Copies may overlap, and products may overlap waits; other spans do not overlap.
    levels : tuple of (int, int, int)
        For an mbarrier: a step, and the arrivals and bytes that its phase needs from that step on.
    """

    kind: str
    name: str
    block: tuple[int, int, int]
    begin: int
    end: int
    spans: tuple[Span, ...] = ()
    levels: tuple[tuple[int, int, int], ...] = ()
