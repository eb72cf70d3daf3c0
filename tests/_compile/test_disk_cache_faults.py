"""Tests of the disk cache when another process removes files, or when the disk accepts no file."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from cuda_tma._compile import disk_cache, kept
from cuda_tma._compile.disk_cache import UNFINISHED, DiskCache
from cuda_tma.simulate._device import kept_modules


def test_a_failed_write_leaves_no_file(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path / "cache")
    for error in (OSError("no space"), KeyboardInterrupt()):

        def fail(source, target, error=error):
            raise error

        monkeypatch.setattr(disk_cache.os, "replace", fail)
        with pytest.raises(type(error)):
            cache.write("name", b"content")
        assert [*cache.folder.iterdir()] == []
    monkeypatch.setattr(disk_cache.os, "unlink", lambda path: fail("", "", OSError("gone")))
    with pytest.raises(KeyboardInterrupt):
        cache.write("name", b"content")


def test_a_file_that_another_process_removes(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path / "cache")
    cache.write("cuda_tma-a" + UNFINISHED, b"1234")
    entries = [(5.0, 4, cache.folder / "missing-1"), (4.0, 4, cache.folder / "missing-2")]
    monkeypatch.setattr(DiskCache, "_files", lambda self: iter(entries))
    monkeypatch.setattr(DiskCache, "most_bytes", 0, raising=False)
    cache._evict()


def test_only_old_unfinished_files_and_the_oldest_entries_are_removed(tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr(disk_cache.time, "time", lambda: now)
    removed = []
    monkeypatch.setattr(Path, "unlink", lambda self: removed.append(self.name))
    old = disk_cache.ABANDONED_SECONDS
    entries = [
        (now, 4, Path("new")),
        (now - 1, 6, Path("fits")),
        (now - 2, 1, Path("beyond")),
        (now - 3, 1, Path("oldest")),
        (now - old, 0, Path("recent" + UNFINISHED)),
        (now - old - 1, 0, Path("abandoned" + UNFINISHED)),
    ]
    fake = SimpleNamespace(_files=lambda: iter(entries), most_bytes=10)
    DiskCache._evict(fake)
    assert removed == ["beyond", "oldest", "abandoned" + UNFINISHED]


def test_a_note_that_cannot_be_written_is_not_needed(monkeypatch):
    def fail(disk, nvrtc):
        raise OSError

    monkeypatch.setattr(kept, "note_nvrtc", fail)
    for noted, loaded, expected in (
        (None, "a", ["a"]),
        ("a", "b", ["a", "b"]),
        ("a", "a", ["a"]),
        ("a", None, ["a"]),
        (None, None, []),
    ):
        monkeypatch.setattr(kept, "noted_nvrtc", lambda disk, noted=noted: noted)
        monkeypatch.setattr(kept, "loaded_nvrtc", lambda loaded=loaded: loaded)
        assert [*kept._nvrtcs(None)] == expected


@pytest.mark.parametrize("room", [0, 1])
def test_a_module_is_stored_if_it_is_not_too_long(monkeypatch, room):
    stored = {}

    def keep(name, content):
        stored[name] = content
        raise OSError("no space")

    monkeypatch.setattr(kept_modules, "_disk", lambda text: SimpleNamespace(keep=keep))
    monkeypatch.setattr(kept_modules, "_key", lambda text, name: "key")
    monkeypatch.setattr(kept_modules, "packed", lambda *given: {"a": 1})
    size = len(b'{"key":"key","module":{"a":1}}') + len(kept_modules._MAGIC) + kept_modules._DIGEST_BYTES
    monkeypatch.setattr(kept_modules, "_MOST_BYTES", size + room)
    kept_modules.keep("text", "k", None, "k", ["k"])
    assert len(stored) == room and all(len(content) == size for content in stored.values())


def test_only_long_texts_are_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(kept_modules, "cache_folder", lambda: tmp_path)
    least = kept_modules.LEAST_CHARACTERS
    assert kept_modules._disk("a" * (least - 1)) is None and kept_modules._disk("a" * least).folder == tmp_path

    def no_home():
        raise RuntimeError

    monkeypatch.setattr(kept_modules, "cache_folder", no_home)
    assert kept_modules._disk("a" * least) is None
    assert os.path.isdir(tmp_path)
