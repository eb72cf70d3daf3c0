"""Exceptions for input that the simulator cannot read or run; errors of a kernel are findings instead."""

from __future__ import annotations

__all__ = ["ParseError", "TimeLimitReached", "UnsupportedInstruction"]


class ParseError(ValueError):
    """A text that is not PTX, or that contains PTX which the simulator does not support.

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
        """Support pickle and copy, which would call the class with only the whole text."""
        return type(self), (self._message, self.line)


class UnsupportedInstruction(NotImplementedError):
    """An instruction, or a form of an instruction, that the simulator does not implement.

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
        """Support pickle and copy, which would call the class with only the whole text."""
        return type(self), (self.opcode, self.line, self.reason)


class TimeLimitReached(RuntimeError):
    """The end of a launch or of the loading of PTX by the time limit of a :class:`Device`."""
