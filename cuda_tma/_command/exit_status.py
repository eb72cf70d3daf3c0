"""The exit statuses of ``cuda-tma``, and the error for a wrong command line."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

ACCEPTED = 0  # also: the map was decoded or drawn, or both are equal
REFUSED = 1  # also: both differ, a kernel has errors, or the demo's picture is wrong
MISUSE = 2
UNSUPPORTED = 3
INTERRUPTED = 128 + 2  # a shell's status for a program that SIGINT ended
UNREAD = 128 + 13  # ... and SIGPIPE


class Misuse(Exception):
    """The command line is wrong, or a file that it names cannot be read or written."""

    status = MISUSE


class Unsupported(Misuse):
    """A launch could not be judged: an unknown instruction, the time limit, or the memory."""

    status = UNSUPPORTED
