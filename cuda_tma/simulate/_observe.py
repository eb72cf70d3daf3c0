"""What a checker may see of a launch: every access to memory, every synchronisation, in the order they take effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ._lanes import Lanes
from .ptx import Place

if TYPE_CHECKING:
    from ._group import Group

__all__ = ["Access", "Event", "Observer", "announce"]


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
        None for the lanes themselves, else the asynchronous operation that they issued.
    lanes : slice or numpy.ndarray
        The threads, or the one that issued the operation.
    space : str
        ``"global"``, ``"shared"`` or ``"local"``.
    positions : numpy.ndarray of int64
        Where each access begins: an address in global memory, otherwise a byte in the memory of all resident CTAs.
    size_bytes : int
        Of each.
    places : tuple of Place
        In the source: the statement, and the calls it is inlined by.
    """

    kind: str
    proxy: str
    actor: object
    lanes: Lanes
    space: str
    positions: np.ndarray
    size_bytes: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A synchronisation: its name (``"bar.sync"``, ``"fence.proxy.async"``), who, and on what."""

    name: str
    lanes: Lanes
    details: dict[str, object]
    places: tuple[Place, ...]


class Observer(Protocol):
    """A checker."""

    def access(self, access: Access) -> None:
        """Called before the access takes effect."""

    def event(self, event: Event) -> None:
        """Called when the event takes effect."""


def announce(group: Group, name: str, lanes: Lanes, places: tuple[Place, ...], **details: object) -> None:
    """Tell the observer, if there is one, of a synchronisation."""
    if group.machine.observer is not None:
        group.machine.observer.event(Event(name, lanes, details, places))
