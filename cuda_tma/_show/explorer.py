"""The swizzle explorer, which is a page with the place of each element of a box, and the banks of a read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .._compute_capability import NEWEST_COMPUTE_CAPABILITY
from .._data_type import ELEMENTS
from .._errors import TensorMapError
from .._swizzle_pattern import PATTERNS
from ..enums import TensorMapDataType, TensorMapSwizzle
from ..params import Params, TiledParams
from ..rules import check
from ..rules._explain import refusal
from ..smem import box_extents
from .pages import filled
from .svg import MONO, SANS

__all__ = ["explorer", "facts"]

_FOLDER = Path(__file__).parent
_FIRST = {"type": "BFLOAT16", "swizzle": "128B", "columns": 64, "rows": 32, "access": "ldmatrix"}


def explorer(params: Params | None = None) -> str:
    """Return a page with the place of each element and the bank conflicts, for a chosen box, swizzle and access.

    The page needs no network, no library and no GPU.

    Parameters
    ----------
    params : TiledParams, optional
        The initial map, without interleave. In the box, all extents beyond two dimensions must be 1.

    Returns
    -------
    str
        The HTML text of the page, for a file.

    Raises
    ------
    TensorMapError
        If the driver refuses the map on every device, or if the page does not support its box.

    Examples
    --------
    >>> page = explorer()
    >>> page.startswith("<!doctype html>"), len(page) < 200_000
    (True, True)
    """
    chosen = _FIRST if params is None else _chosen(params)
    return filled(
        _FOLDER / "explorer.html",
        sans=SANS,
        mono=MONO,
        formulas=(_FOLDER / "explorer.js").read_text("utf-8"),
        facts=json.dumps(facts() | {"first": chosen}),
    )


def facts() -> dict[str, Any]:
    """Return the facts about data types and swizzles that the page needs."""
    types = [
        {
            "name": TensorMapDataType(data_type).short_name,
            "bits": element.bits,
            "group_bytes": element.group_bytes,
            "row_elements": element.row_elements,
            "swizzles": element.swizzles and [TensorMapSwizzle(swizzle).short_name for swizzle in element.swizzles],
        }
        for data_type, element in ELEMENTS.items()
    ]
    swizzles = [
        {
            "name": TensorMapSwizzle(swizzle).short_name,
            "span_bytes": pattern.span_bytes,
            "atom_bytes": pattern.atom_bytes,
            "repeat_bytes": pattern.repeat_bytes,
            "alignment_bytes": pattern.alignment_bytes,
            "xors": pattern.xors,
            "since": "{}.{}".format(*pattern.since),
        }
        for swizzle, pattern in PATTERNS.items()
    ]
    return {"types": types, "swizzles": swizzles}


def _chosen(params: Params) -> dict[str, object]:
    if violations := check(params, NEWEST_COMPUTE_CAPABILITY):
        raise refusal(params, violations)
    extents = box_extents(params)
    several = [extent for extent in extents[1:] if extent > 1]
    if not isinstance(params, TiledParams) or params.interleave or len(several) > 1:
        raise TensorMapError(
            f"the box delivers {extents}, which the explorer cannot show; pass a tiled map without interleave, whose "
            "box has at most one extent above 1 besides the innermost"
        )
    return {
        "type": TensorMapDataType(params.data_type).short_name,
        "swizzle": TensorMapSwizzle(params.swizzle).short_name,
        "columns": extents[0],
        "rows": several[0] if several else 1,
        "access": "ldmatrix",
    }
