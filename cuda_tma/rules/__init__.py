"""The rules for tensor maps: the tables of rules and warnings, the search for violations, and error messages."""

from .._errors import Violation
from ._rule import Rule
from ._table import RULES, check
from ._warnings import WARNINGS

__all__ = ["RULES", "WARNINGS", "Rule", "Violation", "check"]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
