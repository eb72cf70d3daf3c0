"""Checks of the settings for a Device and a launch, and of a kernel before its launch."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._compile.diagnosis import diagnose_refusal
from ..._compute_capability import parse_compute_capability
from ..._given import shown
from ..._limits import TMA_SINCE
from .._copies.engine import ORDERS
from .._kernel import Kernel
from .._suppression import Suppression
from .schedules import MOST_SCHEDULES

__all__ = [
    "check_headers",
    "check_kernel",
    "check_settings",
    "count",
    "flag",
    "schedule_count",
    "since_tma",
    "suppressions_of",
]


def since_tma(given: Any) -> tuple[int, int]:
    """Return the compute capability; refuse a compute capability without TMA."""
    found = parse_compute_capability(given)
    if found < TMA_SINCE:
        raise ValueError(
            f"compute_capability={shown(given)} has no TMA; pass {TMA_SINCE} or a later compute capability"
        )
    return found


def count(name: str, given: Any, least: int = 1) -> int:
    """Return an integer argument; refuse other types, and values less than `least`."""
    try:
        found = operator.index(given)
    except TypeError:
        raise TypeError(f"{name} is {shown(given)}; pass an integer") from None
    if found < least:
        raise ValueError(f"{name}={shown(found)}; pass {least} or more")
    return found


def schedule_count(given: Any) -> int:
    """Return the number of schedules; refuse invalid values."""
    found = count("schedules", given, -MOST_SCHEDULES)
    if not 1 <= found <= MOST_SCHEDULES:
        raise ValueError(f"schedules={found}; pass 1 to {MOST_SCHEDULES}")
    return found


def flag(name: str, given: Any) -> bool:
    """Return a bool argument; refuse other values, such as a non-empty text, which Python treats as true."""
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"{name} is {shown(given)}; pass True or False")
    return bool(given)


def suppressions_of(given: Iterable[Suppression | str]) -> tuple[Suppression, ...]:
    """Return a tuple of suppressions; the user may pass each suppression as text."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"suppressions is {shown(given)}; pass a sequence of Suppression or of text")
    found = tuple(Suppression.parse(each) if isinstance(each, str) else each for each in given)
    for each in found:
        if not isinstance(each, Suppression):
            raise TypeError(
                f"suppressions has {shown(each)}; pass a Suppression, or text of the form kind:place:reason"
            )
    return found


def check_settings(order: str, seed: int, max_steps: int) -> None:
    """Check the settings of a launch, and refuse invalid values."""
    if not isinstance(order, str) or order not in ORDERS:
        raise ValueError(f"order={shown(order)}; pass one of {', '.join(map(repr, ORDERS))}")
    count("seed", seed, 0)
    count("max_steps", max_steps)


def check_headers(ptx: str, source: str, file: str, name: str, target: str) -> None:
    """Refuse a kernel that the assembler would refuse, with the message of the assembler.

    The simulator does not call the assembler.
    """
    if (refusal := diagnose_refusal(ptx, source, file, name, target)) is not None:
        raise refusal


def check_kernel(given: Any) -> None:
    """Refuse an object that is not a kernel of the simulator."""
    if not isinstance(given, Kernel):
        raise TypeError(f"kernel is a {type(given).__name__}; pass the result of Device.compile or Device.load")
