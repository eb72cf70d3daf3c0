"""Tests of the part of a timeline around the statements of a finding."""

from __future__ import annotations

import pytest

from cuda_tma._show import timeline_part
from cuda_tma._show.timeline_part import part_around
from cuda_tma._show.tracks import Span, Track


def track(name="warp 0", begin=0, end=1000, spans=(), levels=(), kind="warps"):
    return Track(kind, name, (0, 0, 0), begin, end, tuple(spans), tuple(levels))


def wait(begin, end, source=""):
    return Span("wait", begin, end, "w", source=source)


def window(tracks, sources=("a:1",), steps=1000):
    part = part_around(tracks, sources, steps)
    return part.begin, part.begin + part.steps


@pytest.mark.parametrize(
    ("spans", "sources", "expected"),
    [
        ([], (), (0, 1000)),
        ([wait(500, 520, "a:1")], ("b:2",), (0, 1000)),
        ([wait(500, 520, "a:1")], ("a:1",), (440, 580)),
        ([wait(500, 700, "a:1")], ("a:1",), (400, 800)),
        ([wait(100, 120, "a:1"), wait(500, 520, "a:1")], ("a:1",), (440, 580)),
        ([wait(500, 520, "a:1"), wait(500, 530, "a:1")], ("a:1",), (440, 590)),
        ([wait(500, 520, "a:1"), wait(300, 310, "b:2")], ("a:1", "b:2"), (190, 630)),
        ([wait(10, 20, "a:1")], ("a:1",), (0, 80)),
        ([wait(980, 1000, "a:1")], ("a:1",), (920, 1000)),
    ],
)
def test_the_steps_of_a_part(spans, sources, expected):
    assert window([track(spans=spans)], sources) == expected


def test_a_part_has_at_least_one_step_and_at_most_its_limit(monkeypatch):
    assert window([track()], steps=0) == (0, 1) and window([], steps=5) == (0, 5)
    monkeypatch.setattr(timeline_part, "_MOST_STEPS", 50)
    assert window([track()]) == (0, 50)
    assert window([track(spans=[wait(500, 700, "a:1")])]) == (650, 800)


def test_tracks_outside_the_part_are_left_out():
    marked = track("marked", spans=[wait(500, 520, "a:1")])
    others = [
        track("ends", end=440),
        track("ends later", end=441),
        track("begins", begin=580),
        track("early", begin=579),
    ]
    assert [each.name for each in part_around([*others, marked], ["a:1"], 1000).tracks] == [
        "ends later",
        "early",
        "marked",
    ]


def test_tracks_with_a_statement_are_preferred_and_keep_their_order(monkeypatch):
    monkeypatch.setattr(timeline_part, "_MOST_TRACKS", 2)
    tracks = [track("a"), track("b", spans=[wait(500, 520, "a:1")]), track("c"), track("a", kind="copies")]
    assert [each.name for each in part_around(tracks, ["a:1"], 1000).tracks] == ["a", "b"]
    assert [each.name for each in part_around(tracks[::-1], ["a:1"], 1000).tracks] == ["a", "b"]


def test_spans_and_levels_count_from_the_begin_of_the_part(monkeypatch):
    spans = [wait(0, 439), wait(0, 440), wait(441, 450), wait(500, 520, "a:1"), wait(579, 900), wait(580, 590)]
    levels = [(0, 9, 9), (300, 2, 64), (440, 1, 64), (579, 0, 0), (580, 5, 0)]
    (found,) = part_around([track(begin=20, spans=spans, levels=levels)], ["a:1"], 1000).tracks
    assert (found.begin, found.end) == (0, 140)
    assert [(each.begin, each.end) for each in found.spans] == [(0, 0), (1, 10), (60, 80), (139, 140)]
    assert found.levels == ((0, 2, 64), (0, 1, 64), (139, 0, 0))
    monkeypatch.setattr(timeline_part, "_MOST_SPANS", 2)
    (found,) = part_around([track(begin=450, end=500, spans=spans)], ["a:1"], 1000).tracks
    assert (found.begin, found.end, len(found.spans), found.levels) == (10, 60, 2, ())
