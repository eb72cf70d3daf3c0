"""Tests of the command's tables on wide and narrow terminals, and in plain columns. No column is truncated, because
users copy its text."""

import sys

import pytest

from cuda_tma._command import console

HEAD = ("field", "value", "meaning")
ROWS = [("[red]a[0]", "1", "some words that go on for a while"), ("b", "22222", "/a/path/:smile:/of/a/file")]
PLAIN = (
    "field      value  meaning\n"
    "[red]a[0]  1      some words that go on for a while\n"
    "b          22222  /a/path/:smile:/of/a/file\n"
)


@pytest.fixture
def terminal(monkeypatch):
    pytest.importorskip("rich")

    # Each test calls is_wide() itself, because the capture of pytest replaces sys.stdout for each phase of a test.
    def is_wide(columns):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")

    return is_wide


def test_plain_columns_without_a_terminal(capsys):
    console.print_table("a title", HEAD, ROWS)
    assert capsys.readouterr().out == "a title\n" + PLAIN
    console.print_table("", HEAD, ROWS, prose=True)
    assert capsys.readouterr().out == PLAIN


def test_a_table_has_the_room_it_needs_or_is_plain(capsys, terminal):
    """The width of the test's table is the sum of its column widths (9, 5 and 33 characters), two spaces and a line for
    each column, and a last line."""
    terminal(57)
    console.print_table("[b]title", HEAD, ROWS)
    out = capsys.readouterr().out
    assert "[b]title" in out and "│ [red]a[0] │ 1     │ some words that go on for a while │" in out
    assert ":smile:" in out and len(out.splitlines()[-1]) == 57
    terminal(56)
    console.print_table("", HEAD, ROWS)
    assert capsys.readouterr().out == PLAIN


def test_prose_is_wrapped_between_words(capsys, terminal):
    """The test's columns have 9, 5 and 25 characters, where 25 is the length of the path."""
    terminal(49)
    console.print_table("", HEAD, ROWS, prose=True)
    out = capsys.readouterr().out
    assert "│ [red]a[0] │ 1     │ some words that go on for │\n│           │       │ a while" in out
    assert "/a/path/:smile:/of/a/file" in out
    terminal(48)
    console.print_table("", HEAD, ROWS, prose=True)
    assert capsys.readouterr().out == PLAIN


def test_a_terminal_without_rich(capsys, monkeypatch, terminal):
    terminal(200)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    console.print_table("", HEAD, ROWS)
    assert capsys.readouterr().out == PLAIN


def test_json_is_indented(capsys):
    console.print_json({"a": (1, "\udcff")})
    assert capsys.readouterr().out == '{\n  "a": [\n    1,\n    "\\udcff"\n  ]\n}\n'


def test_a_stream_without_a_file_can_be_silenced(monkeypatch):
    console.silence(None)
    # The stream of pytest has no file, so the call has no effect and raises no exception.
    console.silence(sys.stdin)
    monkeypatch.setattr(sys, "stdout", None)
    console.escape_unprintable()
    console.print_table("", HEAD, ROWS)


def test_a_silenced_stream_discards_output(tmp_path):
    with open(tmp_path / "out", "w") as stream:
        stream.write("first")
        stream.flush()
        stream.write("second")
        console.silence(stream)
    assert (tmp_path / "out").read_text() == "first"


def test_complaints(capsys):
    console.complain("so")
    assert capsys.readouterr() == ("", "cuda-tma: so\n")
