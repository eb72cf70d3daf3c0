"""The source files that an excerpt of a finding may show.

A ``.file`` directive of PTX and a ``#line`` of C++ can name any file. The lines of a named file would appear on a
terminal and in uploaded logs. The command therefore opens only files that the user has named, or files in folders that
the user has named.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from .. import include_path
from .._budget import KERNEL_BYTES, PATH_CHARACTERS, SOURCE_BYTES

__all__ = ["Sources"]

_KEPT_FILES = 16


class Sources:
    """The lines of those source files that may be shown.

    Parameters
    ----------
    file : Path
        The file with the C++ or PTX of the kernel.
    folders : sequence of str, optional
        The folders of headers on the command line.
    texts : mapping of str to str, optional
        The texts of files that may not exist on disk; the key is the name of the file.
    generated : collection of str, optional
        The names of the files that a compiler generated.

    Attributes
    ----------
    file : Path
    generated : collection of str
    """

    def __init__(
        self,
        file: Path,
        folders: Sequence[str] = (),
        texts: Mapping[str, str] = MappingProxyType({}),
        generated: Collection[str] = (),
    ):
        self.file, self._texts, self.generated = file, texts, generated
        real = os.path.realpath(file)
        self._kernel, self._beside = real, os.path.dirname(real)
        self._roots = tuple(os.path.realpath(folder) for folder in (include_path(), *folders, *_working_directory()))
        self.lines = lru_cache(maxsize=_KEPT_FILES)(self._lines)

    def _lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a small regular file if these lines may be shown; otherwise return no lines.

        After symbolic links are resolved, the file must be in the kernel's folder, below the working directory, or
        below a folder of headers.
        """
        if name in self._texts:
            return _lines_of(self._texts[name])
        try:
            if len(name) > PATH_CHARACTERS or not self._is_named(path := os.path.realpath(name)):
                return ()
            most = KERNEL_BYTES if path == self._kernel else SOURCE_BYTES
            text = _small_file(path, most).decode("utf-8-sig", "replace")
            return _lines_of(text)
        except (OSError, ValueError):
            return ()

    def _is_named(self, path: str) -> bool:
        if path == self._kernel or os.path.dirname(path) == self._beside:
            return True
        return any(path.startswith(os.path.join(root, "")) for root in self._roots)


def _lines_of(text: str) -> tuple[str, ...]:
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _working_directory() -> Iterator[str]:
    """Yield the working directory, unless it is the root, which contains every file."""
    try:
        folder = os.getcwd()
    except OSError:  # Another process may have removed the working directory.
        return
    if os.path.dirname(folder) != folder:
        yield folder


def _small_file(path: str, most_bytes: int) -> bytes:
    """Return the content of a regular file; do not wait for the writer of a pipe, and do not read a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"{path} is not a regular file")
        data = file.read(most_bytes + 1)  # The system reports the size 0 for every file in /proc.
    if len(data) > most_bytes:
        raise ValueError(f"{path} has more than {most_bytes} bytes")
    return data
