"""Tests of the settings of a run on the command line: refusals of values, and defaults."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from cuda_tma._command import judgement, one_kernel, posted, recording
from cuda_tma._command.exit_status import Misuse

NOTHING = {"grid": None, "block": None, "cluster": None, "arg": [], "launch_skip": 0, "launch_count": None,
           "kernel": None}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), [("60", 60.0), ("0.5", 0.5), ("1e-3", 0.001)])
def test_a_time_limit(text, value):
    assert judgement.seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1e300", "1 s"])
def test_a_time_limit_that_is_no_time(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time; write seconds as 60 or 0.5"):
        judgement.seconds(text)


def test_a_suppression():
    found = judgement.suppression("race:k.cu:7:known")
    assert (found.kind, found.place, found.reason) == ("race", "k.cu:7", "known")
    with pytest.raises(argparse.ArgumentTypeError):
        judgement.suppression("nothing")


def test_suppressions_of_files(tmp_path):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("# a comment\nrace:k.cu:7:known\n")
    bad.write_text("nothing\n")
    first = judgement.suppression("race:a:7:b")

    def given(*files):
        return judgement.suppressions_of(SimpleNamespace(suppress=[first], suppressions=[*map(str, files)]))

    assert given() == (first,)
    assert [each.place for each in given(good, good)] == [first.place, "k.cu:7", "k.cu:7"]
    with pytest.raises(Misuse, match="missing.txt cannot be read: No such file or directory"):
        given(good, tmp_path / "missing.txt")
    with pytest.raises(Misuse, match="bad.txt"):
        given(bad)


def test_default_settings():
    unset, given = SimpleNamespace(schedules=None, seed=None), SimpleNamespace(schedules=7, seed=0)
    assert (judgement.schedules_of(unset), judgement.seed_of(unset)) == (judgement.SCHEDULES, judgement.SEED)
    assert (judgement.schedules_of(given), judgement.seed_of(given)) == (7, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": (1, 1, 1)}, "--grid is only for a single kernel, not for launches; leave it out"),
        ({"cluster": (1, 1, 1), "arg": ["0"]}, "--cluster is only for a single kernel"),
        ({"arg": ["0"]}, "--arg is only for a single kernel"),
        ({"launch_skip": -1}, "--launch-skip must be 0 or more, and --launch-count 1 or more"),
        ({"launch_count": 0}, "--launch-skip must be 0 or more, and --launch-count 1 or more"),
        ({"kernel": "("}, r"--kernel \( is not a regular expression"),
    ],
)
def test_a_filter_that_selects_no_launch(changes, message):
    with pytest.raises(Misuse, match=message):
        judgement.check_filters(SimpleNamespace(**NOTHING | changes), "launches")


@pytest.mark.parametrize("changes", [{}, {"launch_count": 1, "launch_skip": 5}, {"kernel": "k.*"}])
def test_a_filter_that_may_select_a_launch(changes):
    judgement.check_filters(SimpleNamespace(**NOTHING | changes), "launches")


# ---- one kernel, and recordings ----


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("k.ptx", b".version 9.0", ""),
        ("a.out", b"\x7fELF\2", "./a.out"),
        ("short", b"\x7fEL", ""),
        ("script.py", b"", "python script.py"),
    ],
)
def test_the_command_of_a_program(tmp_path, monkeypatch, name, content, command):
    monkeypatch.chdir(tmp_path)
    path = one_kernel.Path(name)
    path.write_bytes(content)
    assert one_kernel._command_of(path) == command
    assert one_kernel._command_of(one_kernel.Path("missing")) == ""
    if command.startswith("./"):
        assert one_kernel._command_of(tmp_path / name) == str(tmp_path / name)


SETTINGS = {"schedules": None, "strict": False, "suppress": [], "suppressions": [], "time_limit": None}


@pytest.mark.parametrize(
    ("recorded", "changes", "expected"),
    [
        ({}, {}, (recording.SCHEDULES, False)),
        ({"schedules": 9, "strict": True}, {}, (9, True)),
        ({"schedules": 9, "strict": 1}, {"schedules": 2}, (2, False)),
        ({}, {"strict": True}, (recording.SCHEDULES, True)),
    ],
)
def test_the_settings_of_a_recording(recorded, changes, expected):
    found = recording._settings(SimpleNamespace(**SETTINGS | changes), SimpleNamespace(settings=recorded))
    assert (found["schedules"], found["strict"]) == expected


@pytest.mark.parametrize("schedules", [0, "many", 1 << 40])
def test_settings_that_no_device_has(schedules):
    with pytest.raises(Misuse, match="schedules"):
        recording._settings(SimpleNamespace(**SETTINGS), SimpleNamespace(settings={"schedules": schedules}))


# ---- posted numbers ----


@pytest.mark.parametrize(
    ("text", "value"), [("b'ab'", b"ab"), ("'ab'", None), ("b'a", None), ("x(", None), ("f()", None), ("7", None)]
)
def test_a_literal_of_bytes(text, value):
    assert posted._literal(text) == value


@pytest.mark.parametrize(("count", "size"), [*posted._WORD_BYTES.items()])
def test_decimal_words(count, size):
    most = (1 << 8 * size) - 1
    words = [*range(1, count), most]
    assert posted._decimal(", ".join(map(str, words))) == b"".join(word.to_bytes(size, "little") for word in words)
    assert posted._decimal(", ".join(map(str, [*words[:-1], most + 1]))) is None
    assert posted._decimal(", ".join(map(str, words[1:]))) is None
