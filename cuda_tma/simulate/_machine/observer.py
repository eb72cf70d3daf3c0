"""The interface of an observer, which receives all events and accesses of a launch and returns findings."""

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
    """The interface of an observer, such as the sanitizer or the recorder of a timeline."""

    def begin(self, parts: Parts) -> None:
        """Begin the observation before the launch runs."""

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings at the end of the launch."""

    def follows(self, before: Any) -> None:
        """Connect this observer with the observer of the preceding grid, which may still run when this grid begins."""

    def explained(
        self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]
    ) -> Sequence[tuple[str, Instruction | None]]:
        """Return labeled statements that explain a fault of `lanes` while the threads in `waiting` wait."""


class Both:
    """A pair of observers of one launch, the second of which receives every step."""

    def __init__(self, first: Observer, second: Observer):
        self._first, self._second = first, second

    def steps_of(self, code: Code) -> list[Step]:
        return self._second.steps_of(code)

    def begin(self, parts: Parts) -> None:
        self._first.begin(parts)
        self._second.begin(parts)

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> object:
        """Return the records of both observers for an asynchronous operation."""
        return self._first.issue(lane, instruction, kind), self._second.issue(lane, instruction, kind)

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> None:
        """Return None, because the second observer records each operation separately."""

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
