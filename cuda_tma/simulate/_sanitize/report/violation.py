"""A violation that a check has found, with the facts of the case, and the rule and the remedy of its class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._copies.parts import Parts
from ..._findings import Finding, message_of
from ..._ptx import Instruction
from .remedies import RULES
from .statements import Explained, name_of

__all__ = ["Violation"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Violation(ABC):
    """One violation of a rule of the PTX ISA.

    Attributes
    ----------
    now : Instruction
        The statement at which the violation was found.
    lane : int
        The lane of the thread that executes this statement or has issued the operation.
    other : Instruction or None
        The statement with which `now` conflicts.
    related : sequence of Explained
        Statements that explain the violation.
    is_disputed : bool
        Whether the rule is disputed, for example because hardware keeps the order; the violation is then advice.
    KIND, RULE, REMEDY : str
        The kind of the finding, the key of its rule in :data:`RULES`, and the remedy.
    IS_ADVICE : bool
        Whether each violation of the class is advice.
    """

    now: Instruction
    lane: int
    other: Instruction | None = None
    related: Sequence[Explained] = ()
    is_disputed: bool = False
    KIND: ClassVar[str]
    RULE: ClassVar[str]
    REMEDY: ClassVar[str]
    IS_ADVICE: ClassVar[bool] = False

    @abstractmethod
    def sentence(self, parts: Parts) -> str:
        """Return a sentence that describes the event, with its numbers and places."""

    @property
    def severity(self) -> str:
        return "advice" if self.is_disputed or self.IS_ADVICE else "error"

    @property
    def rule(self) -> str:
        return RULES[self.RULE]

    @property
    def remedy(self) -> str:
        return self.REMEDY

    @property
    def racing_read(self) -> tuple[Instruction, Instruction] | None:
        """The load and the write of a race between two threads, if a replay can decide whether the load matters."""
        return None

    @property
    def cause(self) -> tuple[int, ...]:
        """The ``id`` of each statement; violations of one kind with the same statements are one finding."""
        return (id(self.now),) if self.other is None else (id(self.other), id(self.now))

    def finding(self, parts: Parts) -> Finding:
        """Return the finding that reports this violation."""
        now, other, rule = self.now, self.other, self.rule
        blocks, threads = parts.geometry.blocks_and_threads(np.array([self.lane]))
        places, line = (other.places, other.line) if other is not None else ((), 0)
        message = message_of(self.sentence(parts), rule, self.remedy)
        named = {now.places, places}
        beside = tuple(
            (what, by.places) for what, by in self.related if by is not None and by.places and by.places not in named
        )
        what = self.KIND, self.severity, message, now.places, blocks, threads, now.line
        return Finding(*what, 1, places, line, rule, self.remedy, beside)

    def thread(self, parts: Parts) -> str:
        """Return the name of the thread of the violation."""
        return parts.geometry.thread_name(self.lane)

    def issued(self, parts: Parts) -> str:
        """Return the name of the operation that the thread has issued, with the name of the thread."""
        return f"{name_of(self.now)} that {self.thread(parts)} issued"
