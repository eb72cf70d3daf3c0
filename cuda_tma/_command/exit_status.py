"""The exit statuses of ``cuda-tma``, and the error for a wrong command line."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

# The commands for tensor maps also return status 0 if they decode or draw a map, or compare two equal maps.
ACCEPTED = 0
# The commands return status 1 if two maps differ, a kernel has errors, or the picture of the demo is wrong.
REFUSED = 1
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
