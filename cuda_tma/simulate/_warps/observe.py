"""The events of a launch for a checker: accesses and synchronization, in the order of their effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._ptx import Instruction
from .code import Code, Step
from .events import Event
from .lanes import Lanes

__all__ = ["Access", "Events", "Listener"]


@dataclass(slots=True, eq=False)  # frozen, each takes twice the time
class Access:
    """Reads or writes of one instruction, or of one asynchronous operation.

    Attributes
    ----------
    kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    proxy : str
        ``"generic"``, ``"async"`` or ``"tensormap"``.
    actor : object
        None for the lanes themselves, else what :meth:`Listener.issue` gave for the operation that they issued.
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
        The mbarrier that receives the completion of the operation.
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


class Listener(Protocol):
    """The part of an observer that a running machine calls."""

    def steps_of(self, code: Code) -> list[Step]:
        """Return the steps that execute a function, so that an observer may count them."""

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> object:
        """Called when a thread begins an asynchronous operation; the result comes back as `Access.actor`.

        `kind` is the kind of the groups by which threads wait for it; None without groups.
        """

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> object | None:
        """Called when lanes of a warp, or lanes whose operations take effect `is_now`, begin one each.

        The result is the `Access.actor` of accesses by several of these lanes; None if they must begin one by one.
        """

    def access(self, access: Access) -> None:
        """Called before the access takes effect."""

    def event(self, event: Event) -> None:
        """Called when the event takes effect."""


class Events:
    """The way of events to the observer of a launch, if there is one.

    Attributes
    ----------
    observer : Listener or None
    """

    __slots__ = ("observer",)

    def __init__(self, observer: Listener | None):
        self.observer = observer

    def steps_of(self, code: Code) -> list[Step]:
        """Return the steps that execute a function."""
        return code.steps if self.observer is None else self.observer.steps_of(code)

    def tell(self, event: Event) -> None:
        """Report an event."""
        if self.observer is not None:
            self.observer.event(event)
