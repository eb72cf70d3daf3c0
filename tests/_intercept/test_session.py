"""The session of a process: the order of its events and its progress line."""

from __future__ import annotations

import sys

import pytest

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
def test_the_progress_line_counts_launches_on_a_terminal_alone(capsys, monkeypatch, terminal):
    """Each launch here is short: the run as a whole is long enough for the line."""
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
