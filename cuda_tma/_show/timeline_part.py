"""A part of the tracks of a CTA, around the executions of some statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from .tracks import Span, Track

__all__ = ["Part", "part_around"]

_MARGIN = 0.5  # Each margin is half of the time between the first and the last statement of the finding.
_LEAST_MARGIN_STEPS = 60
_MOST_STEPS = 6000
_MOST_TRACKS = 24
_MOST_SPANS = 400  # _MOST_SPANS limits the spans of a track in a part.


class Part(NamedTuple):
    """The parts of tracks between two steps of a launch.

    The steps of the parts count from the first of the two steps.
    """

    tracks: tuple[Track, ...]
    begin: int
    steps: int


def part_around(tracks: Sequence[Track], sources: Collection[str], steps: int) -> Part:
    """Return the part around the last execution of each statement; without an execution, return the first steps.

    Parameters
    ----------
    tracks : sequence of Track
        The tracks of one CTA.
    sources : collection of str
        ``file:line`` of statements.
    steps : int
        The steps of the whole launch.
    """
    begin, end = _window(tracks, sources, steps)
    parts = [_cut(track, begin, end) for track in tracks if track.begin < end and track.end > begin]
    parts.sort(key=lambda track: not any(span.source in sources for span in track.spans))
    kept = parts[:_MOST_TRACKS]
    places = {(track.kind, track.name): number for number, track in enumerate(tracks)}
    kept.sort(key=lambda track: places[track.kind, track.name])
    return Part(tuple(kept), begin, end - begin)


def _window(tracks: Sequence[Track], sources: Collection[str], steps: int) -> tuple[int, int]:
    last: dict[str, Span] = {}
    for track in tracks:
        for span in track.spans:
            if span.source in sources and (span.source not in last or span.begin >= last[span.source].begin):
                last[span.source] = span
    if not last:
        return 0, max(1, min(steps, _MOST_STEPS))
    first, end = min(span.begin for span in last.values()), max(span.end for span in last.values())
    margin = max(_LEAST_MARGIN_STEPS, int(_MARGIN * (end - first)))
    begin = max(0, first - margin, end - _MOST_STEPS)
    return begin, max(begin + 1, min(steps, end + margin))


def _cut(track: Track, begin: int, end: int) -> Track:
    """Return the part of a track between two steps.

    The steps of the part count from the first of the two steps.
    """
    spans = [
        replace(span, begin=max(span.begin, begin) - begin, end=min(span.end, end) - begin)
        for span in track.spans
        if span.begin < end and span.end >= begin
    ]
    return replace(
        track,
        begin=max(track.begin, begin) - begin,
        end=min(track.end, end) - begin,
        spans=tuple(spans[:_MOST_SPANS]),
        levels=_levels(track, begin, end),
    )


def _levels(track: Track, begin: int, end: int) -> tuple[tuple[int, int, int], ...]:
    """Return the level that applies at the first of two steps, and the levels between the two."""
    before = [level for level in track.levels if level[0] < begin][-1:]
    within = [level for level in track.levels if begin <= level[0] < end]
    return tuple((max(when, begin) - begin, arrivals, tx) for when, arrivals, tx in (*before, *within))
