"""Tests of standard streams that are closed or broken."""

import io
import sys

from cuda_tma._command import console


class Stream(io.StringIO):
    """A stream whose descriptor cannot be used."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def fileno(self):
        raise self.error


def test_a_stream_without_a_descriptor_stays_as_it_is():
    for error in (OSError(), ValueError("closed"), io.UnsupportedOperation()):
        console.silence(Stream(error))
    console.silence(None)


def test_the_rest_of_a_stream_is_discarded(tmp_path):
    path = tmp_path / "out"
    with path.open("w") as stream:
        stream.write("before")
        stream.flush()
        console.silence(stream)
        stream.write("after")
    assert path.read_text() == "before"


def test_a_long_error_is_cut(monkeypatch):
    monkeypatch.setattr(console, "COMPLAINT_CHARACTERS", 4)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for text in ("abcd", "abcde", "abcdefg"):
        console.complain(text)
    lines = sys.stderr.getvalue().splitlines()
    assert lines == [
        "cuda-tma: abcd",
        "cuda-tma: abcd... and 1 more characters",
        "cuda-tma: abcd... and 3 more characters",
    ]
    monkeypatch.setattr(sys, "stderr", None)
    console.complain("nothing is printed")
