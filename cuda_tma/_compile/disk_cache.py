"""The cache on disk for compiled kernels and parsed modules, which all processes of a user share.

Each entry is one file, which a process writes as a whole.

The name of a file is its key, which is the digest of everything that the kernel depends on. The file contains this key,
and begins with the digest of its own content. A file that was truncated, changed or renamed is not an entry, and is
written again. A file that another user owns or may change is also not an entry. In a shared folder, a user therefore
reads only the user's own kernels.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from .compiled import Compiled

__all__ = ["MODULE_SUFFIX", "MOST_BYTES", "DiskCache", "cache_folder"]

MAGIC = b"cuda_tma kernel 3\n"
SUFFIX, MODULE_SUFFIX, UNFINISHED = ".kernel", ".module", ".part"
# The cache removes only files whose names match the pattern.
_OURS = rf"[0-9a-f]{{64}}(?:\{SUFFIX}|\{MODULE_SUFFIX})|cuda_tma-\w+\{UNFINISHED}"
# MOST_BYTES limits the size of all entries together, and is enough for some thousands of kernels.
MOST_BYTES = 256 << 20
ABANDONED_SECONDS = 3600  # A temporary file that is older than an hour belongs to a process that has ended.
_DIGEST_BYTES = 32
_LENGTH_BYTES = 4
_TYPES = {"name": str, "lowered_name": str, "signature": str, "target": str, "log": str, "ptx_bytes": int}
_TYPES |= {"parameter_names": list, "constants": dict}


def cache_folder() -> Path:
    """Return the folder of the cache, which is ``CUDA_TMA_CACHE_DIR`` or ``cuda_tma`` in the user's cache folder.

    The user's cache folder is ``XDG_CACHE_HOME`` or ``~/.cache``. A relative path in ``XDG_CACHE_HOME`` is ignored (XDG
    Base Directory Specification).

    Raises
    ------
    RuntimeError
        If the home folder does not exist.
    """
    if own := os.environ.get("CUDA_TMA_CACHE_DIR"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "cuda_tma"


class DiskCache(NamedTuple):
    """The compiled kernels in a folder, which the first stored kernel creates.

    Parameters
    ----------
    folder : Path
    most_bytes : int, optional
        The size above which the cache removes the least recently used kernels.
    """

    folder: Path
    most_bytes: int = MOST_BYTES

    def get(self, key: str) -> Compiled | None:
        """Return the kernel for a key, or None if the entry is absent or broken."""
        name = f"{key}{SUFFIX}"
        try:
            compiled = unpacked(self.read(name), key)
        except (OSError, ValueError):
            return None
        self._used(name)
        return compiled

    def content(self, name: str, most_bytes: int) -> bytes:
        """Return the content of an entry, up to a number of bytes. Raise OSError as :meth:`read` does."""
        found = self.read(name, most_bytes)
        self._used(name)
        return found

    def _used(self, name: str) -> None:
        with suppress(OSError):  # The function os.utime fails on a read-only disk.
            os.utime(self.folder / name, follow_symlinks=False)

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes:
        """Read a regular file. Refuse a file that a user other than this user and root may write.

        Raises
        ------
        OSError
            If the file does not exist, cannot be read, is a link or a pipe, or can be written by other users.
        """
        # Without O_NONBLOCK, opening a pipe would wait until another process opens the pipe for writing.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.folder / name, flags)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            is_own = found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(found.st_mode) or not is_own:
                raise PermissionError(f"{name} is not a regular file that only its user may write")
            return file.read(most_bytes)

    def put(self, key: str, compiled: Compiled) -> None:
        """Store a value for a key. Replace an earlier value.

        Raises
        ------
        OSError
            If the file cannot be written. The cache is then unchanged.
        """
        self.keep(f"{key}{SUFFIX}", packed(compiled, key))

    def keep(self, name: str, content: bytes) -> None:
        """Write an entry, and remove the least recently used entries above the limit.

        Raise OSError as :meth:`put` does.
        """
        self.write(name, content)
        self._evict()

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically, so that a reader finds either the old file or the new file."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(UNFINISHED, "cuda_tma-", self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, self.folder / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _evict(self) -> None:
        """Remove old unfinished files, and the least recently used entries until the rest is below the limit."""
        total = 0
        # The list begins with the most recently used file.
        for used, size, path in sorted(self._files(), reverse=True):
            total += size
            is_unfinished = path.suffix == UNFINISHED
            if time.time() - used > ABANDONED_SECONDS if is_unfinished else total > self.most_bytes:
                with suppress(OSError):  # Another process may have removed the file.
                    path.unlink()

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self.folder.iterdir():
            if re.fullmatch(_OURS, path.name):
                with suppress(OSError):
                    found = path.stat()
                    yield found.st_mtime, found.st_size, path


def packed(compiled: Compiled, key: str) -> bytes:
    """Return a value as bytes.

    The bytes contain the format, the digest of the rest, the length of the JSON text, the JSON text, the PTX and the
    cubin.
    """
    values = {field.name: getattr(compiled, field.name) for field in fields(compiled)}
    ptx, cubin = values.pop("ptx").encode(), values.pop("cubin")
    text = json.dumps({**values, "ptx_bytes": len(ptx), "key": key}).encode()
    body = len(text).to_bytes(_LENGTH_BYTES, "little") + text + ptx + cubin
    return MAGIC + hashlib.sha256(body).digest() + body


def unpacked(content: bytes, key: str) -> Compiled:
    """Return the value in the bytes of :func:`packed`.

    Raise ValueError for other bytes, and for bytes with another key.
    """
    body = content[len(MAGIC) + _DIGEST_BYTES :]
    if content[: len(content) - len(body)] != MAGIC + hashlib.sha256(body).digest():
        raise ValueError("it is not an entry of the cache, or the entry is damaged")
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    try:
        values: Any = json.loads(body[_LENGTH_BYTES:end])
    except RecursionError:
        raise ValueError("it is not an entry of the cache: its JSON is nested too deeply") from None
    if not isinstance(values, dict) or values.pop("key", None) != key:
        raise ValueError("the entry belongs to another key")
    return _compiled(values, body[end:])


def _compiled(values: dict[str, Any], rest: bytes) -> Compiled:
    """Return the compiled kernel if every field has its type."""
    if {name: type(value) for name, value in values.items()} != _TYPES:
        raise ValueError("it is not an entry of the cache: a field is missing or has another type")
    size, names = values.pop("ptx_bytes"), tuple(values.pop("parameter_names"))
    constants = values["constants"].values()
    if not 0 <= size <= len(rest) or {*map(type, names)} - {str} or {*map(type, constants)} - {int}:
        raise ValueError("it is not an entry of the cache: the value of a field has the wrong type")
    return Compiled(**values, parameter_names=names, ptx=rest[:size].decode(), cubin=rest[size:])
