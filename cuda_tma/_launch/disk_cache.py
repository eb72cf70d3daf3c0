"""Compiled kernels on disk, shared by all processes of a user: a file for each, written whole or not at all.

A file is named by the digest of all that its kernel depends on, and begins with the digest of its own content: one that
was cut short, or changed, is no entry, and is written anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from .compiled import Compiled

__all__ = ["MOST_BYTES", "DiskCache", "cache_folder"]

MAGIC = b"cuda_tma kernel 2\n"
SUFFIX, UNFINISHED = ".kernel", ".part"
_OURS = rf"[0-9a-f]{{64}}\{SUFFIX}|cuda_tma-\w+\{UNFINISHED}"  # nothing else is ever removed
MOST_BYTES = 256 << 20  # of all entries: some thousands of kernels
ABANDONED_SECONDS = 3600  # a temporary file this old is of a process that did not finish
_DIGEST_BYTES = 32
_LENGTH_BYTES = 4


def cache_folder() -> Path:
    """Where kernels are kept: ``CUDA_TMA_CACHE_DIR``; else ``cuda_tma`` in the user's cache folder.

    That is ``XDG_CACHE_HOME``, or ``~/.cache`` (XDG Base Directory Specification: a relative path is not taken).

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    if own := os.environ.get("CUDA_TMA_CACHE_DIR"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "cuda_tma"


class DiskCache(NamedTuple):
    """The kernels in a folder, which is made when the first is put there.

    Parameters
    ----------
    folder : Path
    most_bytes : int, optional
        When more is kept, those go that were not used for longest.
    """

    folder: Path
    most_bytes: int = MOST_BYTES

    def get(self, key: str) -> Compiled | None:
        """What was put under a key; None if nothing was, or it is broken."""
        path = self.folder / f"{key}{SUFFIX}"
        try:
            compiled = unpacked(path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with suppress(OSError):  # of another user, or on a disk that is read only
            os.utime(path)  # used now
        return compiled

    def put(self, key: str, compiled: Compiled) -> None:
        """Keep a value under a key, in place of any other.

        Raises
        ------
        OSError
            If it cannot be written; then nothing has changed.
        """
        self.write(f"{key}{SUFFIX}", packed(compiled))
        self._evict()

    def write(self, name: str, content: bytes) -> None:
        """Put a whole file in place at once: who reads it finds the old one or the new one."""
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
        """Remove what was not used for longest until the rest is small enough, and what others left unfinished."""
        total = 0
        for used, size, path in sorted(self._files(), reverse=True):  # the last used first
            total += size
            is_unfinished = path.suffix == UNFINISHED
            if time.time() - used > ABANDONED_SECONDS if is_unfinished else total > self.most_bytes:
                with suppress(OSError):  # another process was here before
                    path.unlink()

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self.folder.iterdir():
            if re.fullmatch(_OURS, path.name):
                with suppress(OSError):
                    found = path.stat()
                    yield found.st_mtime, found.st_size, path


def packed(compiled: Compiled) -> bytes:
    """A value as bytes: what it is, the digest of the rest, the length of the JSON that follows, and PTX and cubin."""
    values = {field.name: getattr(compiled, field.name) for field in fields(compiled)}
    ptx, cubin = values.pop("ptx").encode(), values.pop("cubin")
    text = json.dumps({**values, "ptx_bytes": len(ptx)}).encode()
    body = len(text).to_bytes(_LENGTH_BYTES, "little") + text + ptx + cubin
    return MAGIC + hashlib.sha256(body).digest() + body


def unpacked(content: bytes) -> Compiled:
    """The value of :func:`packed`'s bytes; ValueError for any others."""
    body = content[len(MAGIC) + _DIGEST_BYTES :]
    if content[: len(content) - len(body)] != MAGIC + hashlib.sha256(body).digest():
        raise ValueError("not an entry, or a broken one")
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    values: dict[str, Any] = json.loads(body[_LENGTH_BYTES:end])
    middle = end + values.pop("ptx_bytes")
    values["parameter_names"] = tuple(values["parameter_names"])
    return Compiled(**values, ptx=body[end:middle].decode(), cubin=body[middle:])
