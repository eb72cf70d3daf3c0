"""What a rule about tensor maps is, and what breaking one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..params import Im2colParams, Im2colWideParams, TiledParams
from ._find import Find, Finding

__all__ = ["ALL_MODES", "API", "IM2COL", "OBSERVED", "PIXELS", "TILED", "UNVERIFIED", "WIDE", "Rule", "Violation"]

# modes
TILED: tuple[type, ...] = (TiledParams,)
IM2COL: tuple[type, ...] = (Im2colParams,)
WIDE: tuple[type, ...] = (Im2colWideParams,)
PIXELS = IM2COL + WIDE
ALL_MODES = TILED + PIXELS

# sources
API = "CUDA 13.5 driver API, cuTensorMapEncode*: "
OBSERVED = "observed: driver 580, sm_90"
UNVERIFIED = " (documented, not verified on hardware)"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint.

    Attributes
    ----------
    parameter : str
        The driver's argument, as in :class:`cuda_tma.TiledParams`; also ``rank`` and ``compute_capability``.
    index : int or None
        Which element of an array argument, in driver order (0 is innermost).
    value : object
        What was given.
    rule : str
        The rule's name in the table.
    fix : str
        The remedy in driver's terms; empty where there is none to name.
    source : str
        Where the rule is documented or was observed.
    severity : str
        ``"error"``: the driver refuses it. ``"warning"``: it accepts it, and users regret it.
    requirement : str
        What the value must be: ``"a multiple of 16"``.
    nearest : int or None
        The nearest legal value, where there is one, in the argument's own units.
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

    @property
    def message(self) -> str:
        """The violation in the driver's terms."""
        name = self.parameter if self.index is None else f"{self.parameter}[{self.index}]"
        verb = "must be" if self.severity == "error" else "should be"
        return f"{name}={self.value} {verb} {self.requirement}. {self.fix}".rstrip()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table of rules.

    Attributes
    ----------
    name, parameter, text, source : str
        `text` states the constraint for the documentation.
    find : callable
        From a :class:`TensorMap` to what breaks the rule; empty if nothing does.
    modes : tuple of type
        The modes it holds for.
    severity : str
        ``"error"`` or ``"warning"``.
    """

    name: str
    parameter: str
    text: str
    source: str
    find: Find
    modes: tuple[type, ...] = ALL_MODES
    severity: str = "error"

    def violation(self, found: Finding) -> Violation:
        """A finding with what the row knows."""
        index, value, requirement, nearest, fix = found
        fix = fix or ("" if nearest is None else f"Use {nearest}.")
        return Violation(self.parameter, index, value, self.name, fix, self.source, self.severity, requirement, nearest)
