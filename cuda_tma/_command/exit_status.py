"""The exit statuses of ``cuda-tma``, and the error for a wrong command line."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

ACCEPTED = 0  # The status also applies if the map was decoded or drawn, or if both maps are equal.
REFUSED = 1  # The status also applies if both maps differ, a kernel has errors, or the demo's picture is wrong.
MISUSE = 2
UNSUPPORTED = 3
INTERRUPTED = 128 + 2  # A shell returns this status for a program that SIGINT ended.
UNREAD = 128 + 13  # A shell returns this status for a program that SIGPIPE ended.


class Misuse(Exception):
    """The exception for a wrong command line, or for a file in it that cannot be read or written."""

    status = MISUSE


class Unsupported(Misuse):
    """The exception for a launch that cannot be checked: an unknown instruction, the time limit, or the memory."""

    status = UNSUPPORTED
