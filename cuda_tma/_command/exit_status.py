"""The exit statuses of ``cuda-tma``, and the error for a wrong command line."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

ACCEPTED = 0  # also if the map was decoded or drawn, or both are equal
REFUSED = 1  # also if both differ, a kernel has errors, or the demo's picture is wrong
MISUSE = 2
UNSUPPORTED = 3
INTERRUPTED = 128 + 2  # the status of a shell for a program that SIGINT ended
UNREAD = 128 + 13  # the status of a shell for a program that SIGPIPE ended


class Misuse(Exception):
    """An error for a wrong command line, or for a file in it that cannot be read or written."""

    status = MISUSE


class Unsupported(Misuse):
    """An error for a launch that could not be checked: an unknown instruction, the time limit, or the memory."""

    status = UNSUPPORTED
