"""Who waits for what: what a report of a deadlock is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._group import Context

__all__ = ["Parked", "Waiting"]


@dataclass(slots=True)
class Parked:
    """Lanes that go on at a place once what they wait for has happened."""

    context: Context
    pc: int
    lanes: np.ndarray


@dataclass(frozen=True, slots=True)
class Waiting:
    """Some parked lanes, and in words what is missing."""

    parked: Parked
    missing: str
