"""What a checker may see of a launch: every access to memory, every synchronisation, in the order they take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._findings import Finding
from .._ptx import Instruction
from .lanes import Lanes

if TYPE_CHECKING:
    from .._machine.machine import Machine
    from .faults import Fault
    from .group import Group

__all__ = ["Access", "Both", "Event", "Observer", "announce", "tell"]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Reads or writes of one instruction, or of one asynchronous operation.

    Attributes
    ----------
    kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    proxy : str
        ``"generic"``, ``"async"`` or ``"tensormap"``.
    actor : object
        None for the lanes themselves, else what :meth:`Observer.issue` gave for the operation that they issued.
    lanes : slice or numpy.ndarray
        The threads, or the one that issued the operation.
    space : str
        ``"global"``, ``"shared"`` or ``"local"``.
    positions : numpy.ndarray of int64
        Where each access begins: an address in global memory, otherwise a byte in the memory of all resident CTAs.
    size_bytes : int
        Of each.
    instruction : Instruction
        Whose doing it is.
    signal : int, optional
        The mbarrier that is told when the operation is complete.
    values : sequence of numpy.ndarray, optional
        What a store of threads writes: one for each element, of all accesses or a single one for all.
    unchanged : callable, optional
        Of a store by an operation: returns for each access whether it writes the bytes that memory holds.
    expected : numpy.ndarray, optional
        Of ``atom.cas``: the value that each access compares with memory.
    """

    kind: str
    proxy: str
    actor: object
    lanes: Lanes
    space: str
    positions: np.ndarray
    size_bytes: int
    instruction: Instruction
    signal: int | None = None
    values: Sequence[np.ndarray] | None = None
    unchanged: Callable[[], np.ndarray] | None = None
    expected: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A synchronisation: its name (``"bar.sync"``, ``"fence.proxy.async"``), who, and on what.

    Attributes
    ----------
    name : str
        The instruction's; or what follows from instructions, such as ``"mbarrier.complete"``, the end of a phase.
    lanes : slice or numpy.ndarray
        Those who execute it, or are let go.
    details : dict
    instruction : Instruction or None
    """

    name: str
    lanes: Lanes
    details: dict[str, Any]
    instruction: Instruction | None = None


class Observer(Protocol):
    """A checker."""

    def begin(self, machine: Machine) -> None:
        """Called before anything runs."""

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> object:
        """Called when a thread begins an asynchronous operation; what is given comes back as `Access.actor`.

        `kind` says what kind of groups it is waited for by, if it is.
        """

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> object | None:
        """Called when lanes of a warp, or lanes whose operations take effect `is_now`, begin one each.

        The result is the `Access.actor` of accesses by several of these lanes; None if they must begin one by one.
        """

    def access(self, access: Access) -> None:
        """Called before the access takes effect."""

    def event(self, event: Event) -> None:
        """Called when the event takes effect."""

    def findings(self) -> tuple[Finding, ...]:
        """Called at the end: what has been found."""

    def follows(self, before: Any) -> None:
        """Called where the grid of another observer may not have ended when this one begins."""

    def explained(
        self, fault: Fault, lanes: np.ndarray, waiting: list[np.ndarray]
    ) -> Sequence[tuple[str, Instruction | None]]:
        """Called at a fault of some lanes, while some wait: statements that explain it, and what each is."""


class Both:
    """Two observers of one launch, of which the second is told of every step."""

    def __init__(self, first: Observer, second: Any):
        self._first, self._second = first, second
        self.steps_of = second.steps_of

    def begin(self, machine: Machine) -> None:
        self._first.begin(machine)
        self._second.begin(machine)

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


def announce(group: Group, name: str, lanes: Lanes, by: Instruction, **details: Any) -> None:
    """Tell the observer, if there is one, of a synchronisation."""
    if group.machine.observer is not None:
        group.machine.observer.event(Event(name, lanes, details, by))


def tell(machine: Machine, name: str, lanes: Lanes, by: Instruction | None = None, **details: Any) -> None:
    """Tell it of what follows from several instructions; `by` is the one that executes now."""
    if machine.observer is not None:
        machine.observer.event(Event(name, lanes, details, by))
