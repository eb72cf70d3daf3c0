"""The stages of a ``cuda_tma::Pipeline``, which the initialization and the positions of its mbarriers determine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple

from .._ptx import Instruction, Place

__all__ = ["RingPlace", "is_of_ring", "own_place", "ring_places"]

_INIT = re.compile(r"8cuda_tma8PipelineILi(\d+)EE4initE")
_ANY = "8cuda_tma8PipelineILi"


class RingPlace(NamedTuple):
    """The stage of an mbarrier in a Pipeline; ``side`` is "full" or "empty"."""

    stage: int
    side: str


def ring_places(made: Mapping[int, Instruction], pitch: int) -> dict[int, RingPlace]:
    """Return the stage of each barrier of a Pipeline, by the position of the barrier in `Memory.shared`.

    The full barriers of a Pipeline precede the empty barriers (pipeline.cuh), and one init() initializes all barriers.

    Parameters
    ----------
    made : mapping of int to Instruction
        The ``mbarrier.init`` of each barrier.
    pitch : int
        The number of bytes of a CTA in `Memory.shared`.
    """
    rings: dict[tuple[int, int, Place | None], list[int]] = defaultdict(list)
    for position in sorted(made):
        if found := _initialised(made[position]):
            count, made_at = found
            rings[position // pitch, count, made_at].append(position)
    places = {}
    for (_, count, _), positions in rings.items():
        for number, position in enumerate(positions):
            side, stage = divmod(number % (2 * count), count)
            places[position] = RingPlace(stage, ("full", "empty")[side])
    return places


def _initialised(instruction: Instruction) -> tuple[int, Place | None] | None:
    """Return the number of stages and the place of the caller for an instruction in Pipeline::init; otherwise None."""
    for index, place in enumerate(instruction.places):
        if place.function and (found := _INIT.search(place.function)):
            return int(found[1]), (*instruction.places, None)[index + 1]
    return None


def is_of_ring(instruction: Instruction) -> bool:
    """Return whether an instruction is in a function of a Pipeline."""
    return any(_ANY in (place.function or "") for place in instruction.places)


def own_place(instruction: Instruction | None) -> Place | None:
    """Return the innermost place of an instruction outside the headers of cuda_tma, otherwise the outermost place."""
    places = instruction.places if instruction else ()
    own = (place for place in places if PurePath(place.file).parent.name != "cuda_tma")
    return next(own, places[-1] if places else None)
