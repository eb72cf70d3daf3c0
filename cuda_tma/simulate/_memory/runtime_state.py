"""The state of the device runtime: the printed text of a kernel, and its heap."""

from __future__ import annotations

from dataclasses import dataclass, field

from .global_memory import Segment

__all__ = ["RuntimeState"]


@dataclass(slots=True)
class RuntimeState:
    """The printed text and the heap of one launch.

    Attributes
    ----------
    output : list of str
    printed : int
        The number of characters of the printed text.
    heap : dict
        The blocks that ``malloc`` has returned; the keys are the addresses.
    """

    output: list[str] = field(default_factory=list)
    printed: int = 0
    heap: dict[int, Segment] = field(default_factory=dict)
