"""Tests of the identity of NVRTC's file, which the disk cache records."""

import json
from types import SimpleNamespace

import pytest

from cuda_tma._compile import nvrtc_file
from cuda_tma._compile.disk_cache import DiskCache


@pytest.fixture
def library(tmp_path):
    """Return a file of a library whose path contains spaces."""
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    (folder / "lib nvrtc.so").write_bytes(b"12")
    return folder / "lib nvrtc.so"


def test_a_path_with_spaces_is_found_again(library, tmp_path):
    disk, identity = DiskCache(tmp_path / "cache"), nvrtc_file.identity_of(str(library))
    assert identity == f"{library} 2 {library.stat().st_mtime_ns}"
    nvrtc_file.note_nvrtc(disk, identity)
    assert nvrtc_file.noted_nvrtc(disk) == identity
    library.write_bytes(b"13.0")
    assert nvrtc_file.noted_nvrtc(disk) is None


@pytest.mark.parametrize(
    "content", ["", "null", "[]", "[1]", '["a"]', "5", pytest.param("[" * 10_000, id="nested"), '[["x"], 7]', "\xff"]
)
def test_a_broken_note_counts_as_absent(content):
    assert nvrtc_file.noted_nvrtc(SimpleNamespace(read=lambda name: content.encode("latin-1"))) is None


def test_a_note_whose_identity_is_no_text_counts_as_absent():
    note = json.dumps([nvrtc_file._installed(), 7]).encode()
    assert nvrtc_file.noted_nvrtc(SimpleNamespace(read=lambda name: note)) is None


def test_a_library_without_a_file_has_no_identity(monkeypatch, library):
    monkeypatch.setattr(nvrtc_file, "load", lambda: None)
    for path, identity in ((None, None), (str(library), nvrtc_file.identity_of(str(library)))):
        monkeypatch.setattr(nvrtc_file, "_path", lambda path=path: path)
        assert nvrtc_file.loaded_nvrtc() == identity
    assert nvrtc_file.identity_of(str(library) + "x") is None
