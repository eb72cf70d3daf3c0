"""Reads by ``shfl.sync`` of registers in lanes that do not execute the instruction, which return undefined values."""

from __future__ import annotations

import numpy as np

from .._ptx import Instruction
from .._pure import shuffle_sources
from .._warps.events import AbsentSource
from .._warps.lanes import Warps, as_array
from ._table import Group

__all__ = ["shuffled"]

_MODES = ("up", "down", "bfly", "idx")


def shuffled(
    group: Group, warps: Warps, by: Instruction, given: list[np.ndarray], values: np.ndarray, knows_all: bool
) -> np.ndarray:
    """Return the values that a shuffle returns to each lane, [warps, 32], and report undefined values to the observer.

    Parameters
    ----------
    given : list of numpy.ndarray
        The sources of the instruction, each [warps, 32].
    knows_all : bool
        Whether the mask is a constant that contains all lanes.
    """
    active = warps.active
    if knows_all and active.all():
        return values
    _, b, c, masks = given
    mode = next(part for part in by.opcode if part in _MODES)
    sources = np.broadcast_to(shuffle_sources(mode, b, c)[0], active.shape)
    takes_part = np.take_along_axis(active, sources, axis=-1) & (masks >> sources.astype(np.uint32) & 1 == 1)
    absent = active & ~takes_part
    if not absent.any():
        return values
    lanes = as_array(warps.whole).reshape(active.shape)[absent]
    group.parts.events.tell(AbsentSource(lanes, by, sources[absent], masks[absent]))
    undefined = group.parts.undefined
    return values if undefined is None else undefined.shuffled(values, absent, by)
