"""The errors of the package.

The errors report refusals on the host, failed compilations, and accesses that end a context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CompileError", "TensorMapError", "TensorMapFault", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint on a tensor map.

    Attributes
    ----------
    parameter : str
        The driver's argument, as in :class:`cuda_tma.params.TiledParams`, or ``rank`` or ``compute_capability``.
    index : int or None
        The index in an array argument, in driver order (0 is innermost).
    value : object
        The user's value.
    rule : str
        The rule's name in the table.
    fix : str
        The remedy in the driver's terms, or an empty text if no remedy is known.
    source : str
        The source of the rule: a document or an observation.
    severity : str
        ``"error"`` if the driver refuses the map. ``"warning"`` if the driver accepts the map, which is probably a
        mistake.
    requirement : str
        The requirement on the value, such as ``"a multiple of 16"``.
    nearest : int or None
        The nearest legal value in the units of the argument; None if no value is legal.
    sentence : str
        The violation in the user's terms (tensor order, elements and bytes). The text is empty if
        :func:`cuda_tma.check` received no `dtype_name`.
    """

    parameter: str
    index: int | None
    value: Any
    rule: str
    fix: str
    source: str
    severity: str = "error"
    requirement: str = ""
    nearest: int | None = None
    sentence: str = ""

    @property
    def message(self) -> str:
        """The violation as text, in the driver's terms."""
        name = self.parameter if self.index is None else f"{self.parameter}[{self.index}]"
        verb = "must be" if self.severity == "error" else "should be"
        return f"{name}={self.value} {verb} {self.requirement}. {self.fix}".rstrip()

    def __str__(self) -> str:
        return self.message


class TensorMapError(ValueError):
    """The error of a tensor, an option or 128 bytes that give no valid tensor map.

    Parameters
    ----------
    message : str
        The argument, its value, the rule and the remedy.
    violations : tuple of Violation, optional
        The broken rules, if :func:`cuda_tma.check` found the fault.
    """

    def __init__(self, message: str, violations: tuple[Violation, ...] = ()):
        super().__init__(message)
        self.violations = tuple(violations)


class TensorMapFault(RuntimeError):
    """The error of a TMA access that ends the CUDA context on hardware.

    Parameters
    ----------
    message : str
        The access, the reason why it is fatal, and the remedy.
    cuda_error : str
        The error that the hardware reports, e.g. ``"CUDA_ERROR_ILLEGAL_INSTRUCTION"``.
    """

    def __init__(self, message: str, cuda_error: str):
        super().__init__(f"{cuda_error}: {message}")
        self.cuda_error = cuda_error
        self._message = message

    def __reduce__(self) -> tuple:
        """Return the values for pickle and copy, which otherwise call the class with only the text."""
        return type(self), (self._message, self.cuda_error), self.__dict__


class CompileError(RuntimeError):
    """The error for a kernel that does not compile, or that the source does not contain.

    Parameters
    ----------
    message : str
        The fault with its file and line, and the compiler's log, which marks the place with a caret.
    log : str, optional
        The compiler's log without the fault.
    file : str, optional
        The file of the first error, as the compiler spells it; empty if the error has no place.
    line : int, optional
        The line of the first error in that file, from 1; 0 if the error has no place.
    """

    def __init__(self, message: str, log: str = "", file: str = "", line: int = 0):
        super().__init__(message)
        self.log, self.file, self.line = log, file, line
