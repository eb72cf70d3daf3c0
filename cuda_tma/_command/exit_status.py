"""What a command ends with: the exit statuses of ``cuda-tma``, and the error of whoever called it wrongly."""

from __future__ import annotations

__all__ = ["ACCEPTED", "INTERRUPTED", "MISUSE", "REFUSED", "UNREAD", "UNSUPPORTED", "Misuse", "Unsupported"]

ACCEPTED = 0  # also: was decoded, drawn, or both are equal
REFUSED = 1  # also: both differ, a kernel has errors, or the demo's picture is wrong
MISUSE = 2
UNSUPPORTED = 3
INTERRUPTED = 128 + 2  # what a shell reports of a program that SIGINT ended
UNREAD = 128 + 13  # ... and SIGPIPE


class Misuse(Exception):
    """The command line is wrong, or something that it names cannot be read or written."""

    status = MISUSE


class Unsupported(Misuse):
    """A launch could not be judged: an instruction that the simulator does not know, the time limit, the memory."""

    status = UNSUPPORTED
