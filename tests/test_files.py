"""Tests of text files that other programs write."""

from __future__ import annotations

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
