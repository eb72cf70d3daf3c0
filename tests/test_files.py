"""Tests of the functions that read text files of other programs."""

from __future__ import annotations

import os
import stat

import pytest

from cuda_tma import _files


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbf.version 8.0\r\n", ".version 8.0\n"),
        (b"// Gr\xfc\xdfe\n", "// Gr\ufffd\ufffde\n"),
        (b"a\rb", "a\nb"),
    ],
    ids=["byte order mark", "Latin-1", "carriage return"],
)
def test_text_of_any_encoding_is_read(tmp_path, content, text):
    path = tmp_path / "kernel.ptx"
    path.write_bytes(content)
    assert _files.text_of_file(path, 100, "replace") == text


def test_a_new_file_is_not_executable(tmp_path):
    umask = os.umask(0)
    try:
        _files.write(tmp_path / "new", "text")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666


def test_a_file_that_cannot_be_used_is_closed(tmp_path, monkeypatch):
    """A file that cannot be used is closed after the error. Otherwise the test would exceed the limit on open files."""
    handles = []

    def refused(handle, blocking):
        handles.append(handle)
        raise KeyboardInterrupt

    (tmp_path / "file").write_text("text")
    monkeypatch.setattr(os, "set_blocking", refused)
    with pytest.raises(KeyboardInterrupt):
        _files.whole(tmp_path / "file", 10)
    with pytest.raises(OSError):
        os.fstat(handles[0])
