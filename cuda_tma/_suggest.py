"""The function that selects the best swizzle and box for a tile, with its reasons."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

from ._compute_capability import parse_compute_capability
from ._data_type import element_bits, parse_data_type
from ._errors import TensorMapError
from ._given import integer, shown
from ._limits import MAX_SMEM_BYTES
from ._options import TensorMapOptions
from .enums import TensorMapDataType as T
from .enums import TensorMapSwizzle
from .params import TiledParams
from .rules import check
from .smem import bank_conflicts, pattern, smem_alignment, smem_bytes, tx_bytes
from .smem._layout import CHUNK_BYTES, chunk_elements, rows

__all__ = ["Suggestion", "suggest"]

_LARGEST_BOX_DIM = 256
_PROBED_ROWS = 64  # A tile with 64 rows shows every bank conflict of a larger tile.


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tensor map's options for a tile.

    Attributes
    ----------
    options : TensorMapOptions
        The options with `box_dim`, `data_type` and `swizzle`, in tensor order.
    loads : tuple of int
        The number of boxes that cover the tile along each dimension, in tensor order.
    reasons : tuple of str
        The reasons for this swizzle and this box, and the resources that it takes.
    """

    options: TensorMapOptions
    loads: tuple[int, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        box, swizzle = self.options.box_dim, self.options.swizzle.short_name
        return "\n".join([f"box_dim={box}, swizzle={swizzle!r}", *(f"- {reason}" for reason in self.reasons)])


def suggest(
    shape: Iterable[SupportsIndex],
    dtype: Any,
    *,
    access: str = "ldmatrix",
    smem_limit_bytes: SupportsIndex = MAX_SMEM_BYTES,
    compute_capability: tuple[int, int] | str = (9, 0),
) -> Suggestion:
    """Return the best swizzle and the largest legal box for a tile.

    Among the swizzles that the driver accepts, choose the one with the fewest bank conflicts. Among swizzles with equal
    conflicts, prefer fewer loads, then less shared memory, then wider rows, then the simplest swizzle.

    Parameters
    ----------
    shape : sequence of int
        The kernel's tile, in elements and in tensor order (the last dimension is contiguous).
    dtype : TensorMapDataType, dtype or str
        The data type, as ``data_type`` of :class:`cuda_tma.TensorMapOptions`.
    access : {"ldmatrix", "column", "row"}
        The way in which a warp reads the tile; see :func:`cuda_tma.smem.bank_conflicts`.
    smem_limit_bytes : int
        The most shared memory that one box may take.
    compute_capability : (int, int) or str
        The compute capability of the device, as in :func:`cuda_tma.check`.

    Raises
    ------
    TensorMapError
        If `shape` does not have 1 to 5 positive extents, or if no box is legal. Also if `dtype` is not a data type, or
        stands for several data types (``float4_e2m1fn_x2``).

    Examples
    --------
    >>> print(suggest((128, 128), "bfloat16"))
    box_dim=(128, 64), swizzle='128B'
    - swizzle='128B': ldmatrix reads are free of bank conflicts (ways: NONE 8, 32B 1, 64B 1, 128B 1), in 2 loads
    - shape[1]=128 takes 2 loads of 64: a row has at most the span of the swizzle, 128 bytes
    - one load delivers 16384 bytes (expect_tx) into 16384 bytes of shared memory, aligned to 1024
    """
    extents, data_type = _extents(shape), parse_data_type(dtype, "dtype")
    limit_bytes = integer("smem_limit_bytes", smem_limit_bytes)
    capability = parse_compute_capability(compute_capability)
    plans = list(_plans(extents, data_type, access, limit_bytes, capability))
    if not plans:
        raise TensorMapError(
            f"no box of dtype {data_type.short_name} for shape={extents} is legal on compute capability "
            f"{capability[0]}.{capability[1]} within smem_limit_bytes={limit_bytes}; choose another type (UINT8 "
            "moves any bytes), or a smaller tile"
        )
    best = min(plans, key=_Plan.cost)
    options = TensorMapOptions(best.params.box_dim[::-1], data_type=data_type, swizzle=best.swizzle)
    return Suggestion(options, best.loads, (_why_swizzle(best, plans, access), *_why_box(best, extents), _takes(best)))


def _without_reasons(
    cls: type[TensorMapOptions], shape: Iterable[SupportsIndex], dtype: Any, **keywords: Any
) -> TensorMapOptions:
    """Return the options of :func:`cuda_tma.suggest` without its reasons.

    >>> TensorMapOptions.suggest((128, 128), "bfloat16").box_dim
    (128, 64)
    """
    return suggest(shape, dtype, **keywords).options


# This module adds the method `suggest` to the options, because the module of the options does not import the rules.
TensorMapOptions.suggest = classmethod(_without_reasons)  # type: ignore[assignment,method-assign]


def _extents(shape: Iterable[SupportsIndex]) -> tuple[int, ...]:
    try:
        extents = tuple(map(operator.index, shape))
    except TypeError:
        raise TensorMapError(f"shape is {shown(shape)}; pass 1 to 5 integers, one for each dimension") from None
    if not 1 <= len(extents) <= 5 or min(extents) < 1:
        raise TensorMapError(f"shape={shown(extents)} is not a tile; pass 1 to 5 extents, each of them 1 or more")
    return extents


# Plans --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """One swizzle with the largest box that is legal for it."""

    params: TiledParams
    loads: tuple[int, ...]  # The sizes of the box are in tensor order.
    ways: int  # `ways` is the degree of the bank conflicts, such as 2 for two-way conflicts.

    @property
    def swizzle(self) -> TensorMapSwizzle:
        return TensorMapSwizzle(self.params.swizzle)

    def cost(self) -> tuple[int, ...]:
        count = math.prod(self.loads)
        return self.ways, count, count * smem_bytes(self.params), -self.params.box_dim[0], self.params.swizzle


def _plans(
    shape: tuple[int, ...], data_type: T, access: str, smem_limit_bytes: int, compute_capability: tuple[int, int]
) -> Iterator[_Plan]:
    for swizzle in TensorMapSwizzle:
        params, loads = _largest_box(shape, data_type, swizzle, smem_limit_bytes)
        if smem_bytes(params) <= smem_limit_bytes and not check(params, compute_capability):
            yield _Plan(params, loads, bank_conflicts(_few_rows(params), access))


def _largest_box(
    shape: tuple[int, ...], data_type: T, swizzle: TensorMapSwizzle, smem_limit_bytes: int
) -> tuple[TiledParams, tuple[int, ...]]:
    """Return the largest box.

    The largest box has the widest rows, the most rows that fit, and evenly divided outer dimensions.
    """
    *outer, inner = shape
    multiple = chunk_elements(data_type)
    width = min(-(-inner // multiple) * multiple, _widest_row(data_type, swizzle))
    cuts = [-(-n // _LARGEST_BOX_DIM) for n in outer]
    while True:
        lengths = [-(-n // cut) for n, cut in zip(outer, cuts, strict=True)]
        params = _map(shape, (*lengths, width), data_type, swizzle)
        longer = [d for d, n in enumerate(lengths) if n > 1]
        if smem_bytes(params) <= smem_limit_bytes or not longer:
            return params, (*cuts, -(-inner // width))
        d = longer[0]
        # The new number of parts is the smallest number that makes each part shorter.
        cuts[d] = -(-outer[d] // (lengths[d] - 1))


def _widest_row(data_type: T, swizzle: int) -> int:
    """Return the elements of the widest row, which is the span of the swizzle or the widest legal box."""
    if not swizzle:
        return _LARGEST_BOX_DIM
    widest = (_LARGEST_BOX_DIM,)  # A row of 256 elements is a whole number of bytes for each data type.
    taken_bytes = rows(_map(widest, widest, data_type, swizzle)).taken_bytes
    return min(_LARGEST_BOX_DIM, _LARGEST_BOX_DIM * pattern(swizzle).span_bytes // taken_bytes)


def _map(shape: Sequence[int], box_dim: Sequence[int], data_type: T, swizzle: int) -> TiledParams:
    """Return a map of a tensor with the tile's size, and with padded rows."""
    multiple = 2 * chunk_elements(data_type)
    width = -(-shape[-1] // multiple) * multiple
    extents = (width, *reversed(shape[:-1]))
    row_bytes = width * element_bits(data_type) // 8
    return TiledParams(
        data_type=data_type,
        global_address=0,
        global_dim=extents,
        global_strides=tuple(row_bytes * math.prod(extents[1:d]) for d in range(1, len(extents))),
        box_dim=tuple(reversed(box_dim)),
        element_strides=(1,) * len(extents),
        swizzle=swizzle,
    )


def _few_rows(params: TiledParams) -> TiledParams:
    """Return a map with fewer rows of the same width, all in one dimension."""
    width, *outer = params.box_dim
    probed = [min(_PROBED_ROWS, math.prod(outer)), *(1 for _ in outer)]
    return replace(params, box_dim=(width, *probed[: len(outer)]))


# Reasons ------------------------------------------------------------------------------------------------------------


def _why_swizzle(best: _Plan, plans: Sequence[_Plan], access: str) -> str:
    ways = ", ".join(f"{plan.swizzle.short_name} {plan.ways}" for plan in plans)
    found = "are free of bank conflicts" if best.ways == 1 else f"conflict {best.ways} ways, the fewest possible"
    count = math.prod(best.loads)
    loads = f"{count} load{'s' * (count > 1)}"
    return f"swizzle={best.swizzle.short_name!r}: {access} reads {found} (ways: {ways}), in {loads}"


def _why_box(best: _Plan, shape: Sequence[int]) -> Iterator[str]:
    for d, (n, count, box) in enumerate(zip(shape, best.loads, best.params.box_dim[::-1], strict=True)):
        if count > 1:
            beyond = f", {count * box - n} beyond the tile" if count * box > n else ""
            yield f"shape[{d}]={n} takes {count} loads of {box}{beyond}: {_limit(best, d, n)}"
        elif box > n:
            yield f"shape[{d}]={n} is not a whole number of {CHUNK_BYTES} bytes: the box takes {box} elements"


def _limit(best: _Plan, dimension: int, extent: int) -> str:
    if dimension == len(best.loads) - 1 and best.swizzle:
        return f"a row has at most the span of the swizzle, {pattern(best.swizzle).span_bytes} bytes"
    if best.loads[dimension] == -(-extent // _LARGEST_BOX_DIM):
        return f"each dimension of a box has at most {_LARGEST_BOX_DIM} elements"
    return "a longer box does not fit into shared memory"


def _takes(best: _Plan) -> str:
    p = best.params
    return (
        f"one load delivers {tx_bytes(p)} bytes (expect_tx) into {smem_bytes(p)} bytes of shared memory, aligned to "
        f"{smem_alignment(p)}"
    )
