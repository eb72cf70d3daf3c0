"""Exceptions for PTX that the simulator cannot read or run; an error of a kernel is a finding instead."""

from __future__ import annotations

__all__ = ["ParseError", "TimeLimitReached", "UnsupportedInstruction"]


class ParseError(ValueError):
    """The exception for a text that is not PTX, or that contains PTX which the simulator does not support.

    Parameters
    ----------
    message : str
        The unexpected text and the expected text.
    line : int
        Line of the PTX text, from 1.
    """

    def __init__(self, message: str, line: int):
        super().__init__(f"PTX line {line}: {message}")
        self.line = line
        self._message = message

    def __reduce__(self) -> tuple:
        """Return the arguments of the constructor, so that pickle and copy can recreate the exception."""
        return type(self), (self._message, self.line)


class UnsupportedInstruction(NotImplementedError):
    """The exception for an instruction, or a form of an instruction, that the simulator does not implement.

    Parameters
    ----------
    opcode : str
        The spelling of the instruction, such as ``"tcgen05.mma.cta_group::1.kind::f16"``.
    line : int
        Line of the PTX text, from 1.
    reason : str, optional
        The unsupported part of the instruction.
    """

    def __init__(self, opcode: str, line: int, reason: str = ""):
        super().__init__(
            f"PTX line {line}: the simulator does not know {opcode}"
            + (f" ({reason})" if reason else "")
            + "; run this kernel on a GPU, or keep the instruction out of it"
        )
        self.opcode = opcode
        self.line = line
        self.reason = reason

    def __reduce__(self) -> tuple:
        """Return the arguments of the constructor, so that pickle and copy can recreate the exception."""
        return type(self), (self.opcode, self.line, self.reason)


class TimeLimitReached(RuntimeError):
    """The exception for a launch, or for the loading of PTX, that exceeds the time limit of a :class:`Device`."""
