"""What a tensor map must obey: the table of rules and of warnings, what each looks for, and how it is said."""

from ._advice import WARNINGS
from ._explain import refusal, sentence
from ._rule import Violation
from ._table import RULES, check, markdown

__all__ = ["RULES", "WARNINGS", "Violation", "check", "markdown", "refusal", "sentence"]
