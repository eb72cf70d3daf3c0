"""What a tensor map must obey: the table of rules and of warnings, what each finds, and how it is said."""

from .._errors import Violation
from ._rule import Rule
from ._table import RULES, check
from ._warnings import WARNINGS

__all__ = ["RULES", "WARNINGS", "Rule", "Violation", "check"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
