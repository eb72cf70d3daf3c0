"""Functions that read and write files of any kind, up to a size limit, and without waits for another process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["absolute", "first_bytes", "opened", "shown_path", "text_of_file", "whole", "write"]


def first_bytes(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read at most `most_bytes` of a file. A device such as /dev/zero has no end.

    A named pipe without a writer reads as empty, although an ordinary open would wait for a writer (POSIX, ``open``,
    ``O_NONBLOCK``). A pipe with a writer is read until the writer ends.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    """
    with opened(path) as file:
        return file.read(most_bytes)


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, without waiting for the writer of a named pipe."""
    return os.fdopen(_handle(path, os.O_RDONLY), "rb")


def whole(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a whole file. Refuse a file that is larger than the limit.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    ValueError
        If the file is larger than the limit, or if its name contains a null character.
    """
    data = first_bytes(path, most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"{os.fspath(path)} has more than {most_bytes} bytes, the limit of a file of this kind")
    return data


def text_of_file(path: str | os.PathLike[str], most_bytes: int, errors: str = "strict") -> str:
    """Read a file as UTF-8. Convert its line ends as Python does, and remove a byte order mark."""
    return whole(path, most_bytes).decode("utf-8-sig", errors).replace("\r\n", "\n").replace("\r", "\n")


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write a text to a file. Write an escape for a character that UTF-8 cannot encode.

    A named pipe without a reader causes an error, because an ordinary open would wait for a reader.

    Raises
    ------
    OSError
        If the file cannot be opened or written.
    """
    with os.fdopen(_handle(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


def _handle(path: str | os.PathLike[str], flags: int) -> int:
    """Return a file descriptor that is opened without waiting; its reads and writes wait."""
    others = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags | others, 0o666)
    try:
        os.set_blocking(handle, True)
    except BaseException:
        os.close(handle)
        raise
    return handle


def absolute(file: str) -> Path:
    """Return an absolute path without ``..``, which compilers keep. Keep symbolic links."""
    return Path(os.path.abspath(file))


def shown_path(file: str) -> str:
    """Return a path relative to the working directory if the file is below that directory."""
    try:
        return str(absolute(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file
