"""An observer of a launch: it sees all events and accesses, and reports findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from .._copies.parts import Parts
from .._findings import Finding
from .._ptx import Instruction
from .._warps.code import Code, Step
from .._warps.events import Event
from .._warps.faults import Fault
from .._warps.observe import Access, Listener

__all__ = ["Both", "Observer"]


class Observer(Listener, Protocol):
    """A checker, or a recorder."""

    def begin(self, parts: Parts) -> None:
        """Called before anything runs."""

    def findings(self) -> tuple[Finding, ...]:
        """Called at the end; return the findings."""

    def follows(self, before: Any) -> None:
        """Called where the grid of another observer may not have ended when this one begins."""

    def explained(
        self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]
    ) -> Sequence[tuple[str, Instruction | None]]:
        """Called at a fault of some lanes, while some wait: statements that explain it, and what each is."""


class Both:
    """Two observers of one launch, of which the second receives every step."""

    def __init__(self, first: Observer, second: Observer):
        self._first, self._second = first, second

    def steps_of(self, code: Code) -> list[Step]:
        return self._second.steps_of(code)

    def begin(self, parts: Parts) -> None:
        self._first.begin(parts)
        self._second.begin(parts)

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> object:
        """Each has its own mark of the operation."""
        return self._first.issue(lane, instruction, kind), self._second.issue(lane, instruction, kind)

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> None:
        """Return None: the second observer follows each operation."""

    def access(self, access: Access) -> None:
        first, second = access.actor if isinstance(access.actor, tuple) else (None, None)
        self._first.access(replace(access, actor=first))
        self._second.access(replace(access, actor=second))

    def event(self, event: Event) -> None:
        self._first.event(event)
        self._second.event(event)

    def findings(self) -> tuple[Finding, ...]:
        return (*self._first.findings(), *self._second.findings())

    def follows(self, before: Any) -> None:
        self._first.follows(before)

    def explained(
        self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]
    ) -> Sequence[tuple[str, Instruction | None]]:
        return self._first.explained(fault, lanes, waiting)
