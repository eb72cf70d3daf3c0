"""The beginning of a file, for commands that read a file of any kind and size."""

from __future__ import annotations

import os

__all__ = ["first_bytes"]


def first_bytes(path: str, most_bytes: int) -> bytes:
    """Read no more than this of a file: a device such as /dev/zero has no end.

    A named pipe without a writer is empty; opened in the usual way, it would wait for one (POSIX, ``open``,
    ``O_NONBLOCK``). A pipe with a writer is read until the writer ends.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        os.set_blocking(handle, True)
        return file.read(most_bytes)
