"""Tests of the order of a session's events, and of the progress line on the terminal."""

from __future__ import annotations

import sys

import pytest

from cuda_tma._intercept import session as module
from cuda_tma._intercept.launched import Launched
from cuda_tma._intercept.options import Options
from cuda_tma._intercept.session import Session
from cuda_tma.simulate import Config
from cuda_tma.simulate._machine import progress

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry nothing() { ret; }
"""


class Events(list[tuple[str, int]]):
    def begun(self, launch: Launched) -> None:
        self.append(("begun", launch.number))

    def ended(self, launch: Launched) -> None:
        self.append(("ended", launch.number))

    def noted(self, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_progress_line_appears_only_on_a_terminal(capsys, monkeypatch, terminal):
    """In the test, each launch is short, but the whole run is long enough for the progress line."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    events = Events()
    session = Session(Options(), events)
    monkeypatch.setattr(progress.time, "monotonic", lambda: session._begun + 2.5)
    for _ in range(3):
        session.launch("nothing", PTX, "nothing", Config(1, 1), (), runtime="test")
    assert events == [(event, number) for number in range(3) for event in ("begun", "ended")]
    shown = [text.strip() for text in capsys.readouterr().err.split("\r")]
    assert (sum(text.startswith("launch 3, nothing: ") for text in shown) > 0) == terminal
    assert shown[-1] == ""


class Notes(Events):
    """A recorder of the notes, and of each launch's number of schedules."""

    def __init__(self) -> None:
        self.schedules: list[int] = []
        self.notes: set[str] = set()

    def ended(self, launch: Launched) -> None:
        assert launch.report is not None
        self.schedules.append(max(len(launch.report.schedules), 1))

    def noted(self, text: str) -> None:
        self.notes.add(text)


def test_very_many_launches_run_under_one_schedule(monkeypatch):
    monkeypatch.setattr(module, "_MOST_ALIKE", 2)
    events = Notes()
    session = Session(Options(schedules=3), events)
    for block in (1, 1, 1, 2):
        session.launch("nothing", PTX, "nothing", Config(1, block), (), runtime="test")
    assert events.schedules == [3, 3, 1, 3]
    (note,) = events.notes
    assert note.startswith("nothing is launched more than 2 times with one configuration")
