"""The exit statuses of ``cuda-tma``, and the error for a wrong command line."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

ACCEPTED = 0  # The status 0 also means that the map was decoded or drawn, or that both maps are equal.
REFUSED = 1  # The status 1 also means that both maps differ, a kernel has errors, or the demo's picture is wrong.
MISUSE = 2
UNSUPPORTED = 3
INTERRUPTED = 128 + 2  # A shell returns 130 for a program that SIGINT ended.
UNREAD = 128 + 13  # A shell returns 141 for a program that SIGPIPE ended.


class Misuse(Exception):
    """The exception for a wrong command line, or for a named file that cannot be read or written."""

    status = MISUSE


class Unsupported(Misuse):
    """The exception for a launch that cannot be checked: an unknown instruction, the time limit, or the memory."""

    status = UNSUPPORTED
