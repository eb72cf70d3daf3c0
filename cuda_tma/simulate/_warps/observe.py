"""The interface of observers, which receive the accesses and events of a launch in the order of their effects."""

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


@dataclass(slots=True, eq=False)  # The dataclass is not frozen, because frozen instances take twice the time to create.
class Access:
    """The reads or writes of one instruction or of one asynchronous operation.

    Attributes
    ----------
    kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    proxy : str
        ``"generic"``, ``"async"`` or ``"tensormap"``.
    actor : object
        The result of :meth:`Listener.issue` for the operation that makes the access; None for an access of threads.
    lanes : slice or numpy.ndarray
        The threads that make the access, or the thread that issued the operation.
    space : str
        ``"global"``, ``"shared"`` or ``"local"``.
    positions : numpy.ndarray of int64
        The start of each access: an address in global memory, otherwise a byte in the memory of all resident CTAs.
    size_bytes : int
        The size of each access.
    instruction : Instruction
        The instruction that makes the access, or that issued the operation.
    signal : int, optional
        The mbarrier that receives the completion of the operation.
    values : sequence of numpy.ndarray, optional
        The values that threads store, as one array for each element. An array has a value for each access, or one value
        for all accesses.
    unchanged : callable, optional
        A function for a store by an operation. The function returns, for each access, whether memory already contains
        the bytes.
    expected : numpy.ndarray, optional
        The value that each access of an ``atom.cas`` compares with memory.
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
        """Return the steps that execute a function; an observer may replace the steps, for example to count them."""

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> object:
        """Record an asynchronous operation that a thread begins, and return the `Access.actor` of its accesses.

        `kind` is the kind of the groups by which threads wait for the operation; None if it has no group.
        """

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> object | None:
        """Record operations that several lanes begin, one operation for each lane.

        The lanes belong to one warp, or `is_now` is true and the operations take effect at once. The result is the
        `Access.actor` of accesses by several of these lanes. The result is None if the operations must begin
        separately.
        """

    def access(self, access: Access) -> None:
        """Observe an access before it takes effect."""

    def event(self, event: Event) -> None:
        """Observe an event when it takes effect."""


class Events:
    """The connection between a launch and its observer, which is None if no observer exists.

    Attributes
    ----------
    observer : Listener or None
    """

    __slots__ = ("observer",)

    def __init__(self, observer: Listener | None):
        self.observer = observer

    def steps_of(self, code: Code) -> list[Step]:
        """Return the steps that execute a function, as the observer returns them."""
        return code.steps if self.observer is None else self.observer.steps_of(code)

    def tell(self, event: Event) -> None:
        """Pass an event to the observer."""
        if self.observer is not None:
            self.observer.event(event)
