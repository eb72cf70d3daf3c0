"""Tests of the disk cache of kernels. Each file is complete or absent, also with many processes, and the total size of
the files has a limit."""

import hashlib
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma._compile import kept
from cuda_tma._compile.compiled import Compiled
from cuda_tma._compile.disk_cache import MAGIC, DiskCache, cache_folder, packed, unpacked

KERNEL = Compiled(
    "k<1>", "_Z1k", "_Zs", "sm_90a", "// µ\n.entry", b"\x7fELF\0\xff", ("a", ""), {"bytes": -3}, "a warning"
)
KEYS = [f"{number:064x}" for number in range(9)]


def test_stored_entries_are_returned(tmp_path):
    disk = DiskCache(tmp_path / "new" / "folder")
    assert disk.get(KEYS[0]) is None
    disk.put(KEYS[0], KERNEL)
    assert disk.get(KEYS[0]) == KERNEL and disk.get(KEYS[1]) is None
    disk.put(KEYS[0], replace(KERNEL, cubin=b""))
    assert disk.get(KEYS[0]).cubin == b"" and len([*disk.folder.iterdir()]) == 1
    assert disk.folder.stat().st_mode & 0o777 == 0o700


@given(st.integers(0, len(packed(KERNEL, KEYS[0])) - 1), st.integers(0, 255), st.booleans())
def test_a_broken_entry_is_ignored(at, byte, is_cut):
    whole = packed(KERNEL, KEYS[0])
    broken = whole[:at] if is_cut else whole[:at] + bytes([byte]) + whole[at + 1 :]
    if broken == whole:
        assert unpacked(broken, KEYS[0]) == KERNEL
    else:
        with pytest.raises(ValueError, match="not an entry"):
            unpacked(broken, KEYS[0])


@pytest.mark.parametrize("content", [b"", b"nonsense", packed(KERNEL, KEYS[0])[:-1], packed(KERNEL, KEYS[0]) + b"\0"])
def test_a_broken_entry_is_written_again(tmp_path, content):
    (tmp_path / f"{KEYS[0]}.kernel").write_bytes(content)
    disk = DiskCache(tmp_path)
    assert disk.get(KEYS[0]) is None
    disk.put(KEYS[0], KERNEL)
    assert disk.get(KEYS[0]) == KERNEL


def test_the_least_recently_used_entry_goes_first(tmp_path):
    size = len(packed(KERNEL, KEYS[0]))
    disk = DiskCache(tmp_path, 3 * size)
    for age, key in enumerate(KEYS[:3]):
        disk.put(key, KERNEL)
        os.utime(tmp_path / f"{key}.kernel", (time.time() - 100 + age,) * 2)
    # A read of the oldest entry makes it the most recently used entry.
    assert disk.get(KEYS[0]) == KERNEL
    disk.put(KEYS[3], KERNEL)
    assert [disk.get(key) is not None for key in KEYS[:4]] == [True, False, True, True]


def test_an_entry_of_another_key_is_ignored(tmp_path):
    disk = DiskCache(tmp_path)
    disk.put(KEYS[0], KERNEL)
    (tmp_path / f"{KEYS[0]}.kernel").rename(tmp_path / f"{KEYS[1]}.kernel")
    assert disk.get(KEYS[1]) is None
    disk.put(KEYS[1], replace(KERNEL, name="other"))
    assert disk.get(KEYS[1]).name == "other"


def forged(change):
    """Return a cache entry whose digest is valid and whose values are changed."""
    content = packed(KERNEL, KEYS[0])
    start = len(MAGIC) + 32
    end = start + 4 + int.from_bytes(content[start : start + 4], "little")
    text = change(json.loads(content[start + 4 : end])).encode()
    body = len(text).to_bytes(4, "little") + text + content[end:]
    return MAGIC + hashlib.sha256(body).digest() + body


@pytest.mark.parametrize(
    "change",
    [
        lambda values: "null",
        lambda values: '"text"',
        lambda values: "[" * 200_000,
        lambda values: json.dumps(values | {"surplus": 1}),
        lambda values: json.dumps({name: values[name] for name in values if name != "log"}),
        lambda values: json.dumps(values | {"lowered_name": 5}),
        lambda values: json.dumps(values | {"parameter_names": "ab"}),
        lambda values: json.dumps(values | {"parameter_names": [1]}),
        lambda values: json.dumps(values | {"constants": {"a": "1"}}),
        lambda values: json.dumps(values | {"ptx_bytes": -5}),
        lambda values: json.dumps(values | {"ptx_bytes": 10**9}),
        lambda values: json.dumps(values | {"ptx_bytes": True}),
    ],
)
def test_a_forged_entry_is_ignored(tmp_path, change):
    (tmp_path / f"{KEYS[0]}.kernel").write_bytes(forged(change))
    (tmp_path / f"{KEYS[0]}.kernel").chmod(0o600)
    assert DiskCache(tmp_path).get(KEYS[0]) is None


def test_an_entry_forged_without_a_change_is_read(tmp_path):
    (tmp_path / f"{KEYS[0]}.kernel").write_bytes(forged(json.dumps))
    (tmp_path / f"{KEYS[0]}.kernel").chmod(0o600)
    assert DiskCache(tmp_path).get(KEYS[0]) == KERNEL


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_may_write_is_not_an_entry(tmp_path, mode):
    tmp_path.chmod(0o777)
    disk, path = DiskCache(tmp_path), tmp_path / f"{KEYS[0]}.kernel"
    disk.put(KEYS[0], KERNEL)
    assert disk.get(KEYS[0]) == KERNEL
    path.chmod(mode)
    assert disk.get(KEYS[0]) is None
    disk.put(KEYS[0], KERNEL)
    assert disk.get(KEYS[0]) == KERNEL


def test_a_file_of_another_user_is_not_an_entry(tmp_path, monkeypatch):
    disk = DiskCache(tmp_path)
    disk.put(KEYS[0], KERNEL)
    found = os.stat(tmp_path / f"{KEYS[0]}.kernel")
    other = os.stat_result((*found[:4], 4711, *found[5:10]))
    monkeypatch.setattr(os, "fstat", lambda handle: other)
    assert disk.get(KEYS[0]) is None


def test_a_pipe_or_a_link_is_not_an_entry(tmp_path):
    disk, path = DiskCache(tmp_path), tmp_path / f"{KEYS[0]}.kernel"
    os.mkfifo(path)
    assert disk.get(KEYS[0]) is None
    path.unlink()
    disk.put(KEYS[0], KERNEL)
    target = path.rename(tmp_path / "target")
    os.utime(target, (1, 1))
    path.symlink_to(target)
    assert disk.get(KEYS[0]) is None
    assert target.stat().st_mtime == 1
    disk.put(KEYS[0], KERNEL)
    assert disk.get(KEYS[0]) == KERNEL and not path.is_symlink()


def test_only_our_own_files_are_removed(tmp_path):
    old = (time.time() - 7200,) * 2
    own = ["cuda_tma-abcdefgh.part", f"{'f' * 64}.kernel"]
    others = [".bashrc", "other.part", "my.kernel", "cuda_tma-young.part", "nvrtc-0123.json"]
    for name in own + others:
        (tmp_path / name).write_text("x" * 100)
        if "young" not in name:
            os.utime(tmp_path / name, old)
    DiskCache(tmp_path, len(packed(KERNEL, KEYS[0]))).put(KEYS[0], KERNEL)
    assert {path.name for path in tmp_path.iterdir()} == {*others, f"{KEYS[0]}.kernel"}


def test_a_folder_without_write_access_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        DiskCache(tmp_path / "file" / "below").put(KEYS[0], KERNEL)
    assert DiskCache(tmp_path / "file" / "below").get(KEYS[0]) is None


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        DiskCache(tmp_path).put(KEYS[0], KERNEL)
    assert [*tmp_path.iterdir()] == []


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("CUDA_TMA_CACHE_DIR", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "cuda_tma"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "cuda_tma"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert str(cache_folder()) == "/cache/cuda_tma"
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", "own")
    assert cache_folder() == tmp_path.cwd() / "own"
    # A shell does not expand the tilde of a quoted path in CUDA_TMA_CACHE_DIR.
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", "~/own")
    assert cache_folder() == tmp_path / "own"


def test_files_that_another_process_removes_meanwhile(tmp_path, monkeypatch):
    size = len(packed(KERNEL, KEYS[0]))
    disk = DiskCache(tmp_path, size)
    disk.put(KEYS[0], KERNEL)
    os.utime(tmp_path / f"{KEYS[0]}.kernel", (time.time() - 100,) * 2)
    names, remove = Path.iterdir, Path.unlink

    def removed_twice(path):
        remove(path)
        # The second removal fails, as if another process had removed the file first.
        remove(path)

    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([*names(folder), folder / f"{KEYS[8]}.kernel"]))
    monkeypatch.setattr(Path, "unlink", removed_twice)
    disk.put(KEYS[1], KERNEL)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEYS[1]}.kernel"]


def test_another_version_of_the_package_has_another_key(monkeypatch):
    before = kept._key(("source",), {"a.cuh": b""}, "13.0")
    assert kept._key(("source",), {"a.cuh": b""}, "13.0") == before
    monkeypatch.setattr(kept, "__version__", "0.0.0")
    assert kept._key(("source",), {"a.cuh": b""}, "13.0") != before


def test_eight_threads_and_two_processes_share_a_folder(tmp_path):
    """Each read of the cache returns a whole entry or no entry, while the limit of two entries causes removals."""
    size = len(packed(KERNEL, KEYS[0]))
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        others = [pool.submit(_used, tmp_path, 2 * size, first) for first in (3, 5)]
        with ThreadPoolExecutor(8) as threads:
            found = [*threads.map(lambda first: _used(tmp_path, 2 * size, first), range(8))]
        found += [other.result() for other in others]
    assert found == [True] * 10
    assert not [file for file in tmp_path.iterdir() if file.suffix == ".part"]


def _used(folder, most_bytes, first):
    """Store and read cache entries. Return whether each read returned a whole entry or no entry."""
    disk, found = DiskCache(folder, most_bytes), []
    for turn in range(20):
        key = KEYS[(first + turn) % len(KEYS)]
        disk.put(key, KERNEL)
        found.append(disk.get(key) in (KERNEL, None))
    return all(found)
