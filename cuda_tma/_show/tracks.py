"""The values of a timeline, which are tracks of warps, copies and mbarriers, and their spans."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Span", "Track"]


@dataclass(frozen=True, slots=True)
class Span:
    """An activity of a track that has a duration.

    Attributes
    ----------
    kind : str
        The kind of the activity: ``"wait"``; the products ``"wgmma"`` and ``"tcgen05"``; the asynchronous copies
        ``"load"``, ``"store"``, ``"reduce"`` and ``"copy"``; or ``"phase"`` of an mbarrier.
    begin, end : int
        The begin and the end in steps. A wait that never completes ends with the launch.
    label : str
        A short text for the picture.
    detail : str
        All known details of the span, which appear when the pointer is on it.
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
    """The activities of one actor in a CTA.

    Attributes
    ----------
    kind : str
        The kind of the actor: ``"warps"`` with the same activity, ``"copies"`` of one CTA, or ``"mbarrier"``.
    name : str
    block : tuple of int
        The ``blockIdx`` of the CTA.
    begin, end : int
        The lifetime of the actor, in steps.
    spans : tuple of Span
        The spans in the order of their begin. Copies may overlap, and products may overlap waits. Other spans do not
        overlap.
    levels : tuple of (int, int, int)
        For an mbarrier, a step with the numbers of arrivals and bytes that its phase needs from that step on.
    """

    kind: str
    name: str
    block: tuple[int, int, int]
    begin: int
    end: int
    spans: tuple[Span, ...] = ()
    levels: tuple[tuple[int, int, int], ...] = ()
