"""The type of a rule about tensor maps."""

from __future__ import annotations

from dataclasses import dataclass

from .._errors import Violation
from ..params import Im2colParams, Im2colWideParams, TiledParams
from ._find import Find, Finding

__all__ = ["ALL_MODES", "API", "IM2COL", "OBSERVED", "PIXELS", "TILED", "UNVERIFIED", "WIDE", "Rule"]

# Each tuple contains the modes of tensor maps to which a rule applies.
TILED: tuple[type, ...] = (TiledParams,)
IM2COL: tuple[type, ...] = (Im2colParams,)
WIDE: tuple[type, ...] = (Im2colWideParams,)
PIXELS = IM2COL + WIDE
ALL_MODES = TILED + PIXELS

# The description of a rule's source begins with one of the texts API and OBSERVED.
API = "CUDA 13.5 driver API, cuTensorMapEncode*: "
OBSERVED = "observed: driver 580, sm_90"
UNVERIFIED = " (documented, not verified on hardware)"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row in a table of rules.

    Attributes
    ----------
    name, parameter, text, source : str
        The facts about the rule. `text` states the constraint for the documentation.
    find : callable
        The function that returns the violations of the rule in a :class:`TensorMap`, or an empty sequence.
    modes : tuple of type
        The modes to which the rule applies.
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
        """Return a violation from a finding and the facts of the row."""
        index, value, requirement, nearest, fix = found
        fix = fix or ("" if nearest is None else f"Use {nearest}.")
        return Violation(self.parameter, index, value, self.name, fix, self.source, self.severity, requirement, nearest)
