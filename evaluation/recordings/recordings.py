"""Recordings of hardware, which are gzip files with one JSON object in each line.

Many rows contain the parameters of a tensor map.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuda_tma.params import Im2colParams, Im2colWideParams, Params, TiledParams


def read(path: str | Path) -> list[dict]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def write(path: str | Path, rows: Iterable[dict]) -> None:
    """Write rows to a file, so that equal rows give equal bytes."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    Path(path).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def first_of_each(group: Callable[[dict], Hashable], rows: Iterable[dict]) -> list[dict]:
    """Return the first row of each group."""
    first: dict[Hashable, dict] = {}
    for row in rows:
        first.setdefault(group(row), row)
    return list(first.values())


_KINDS = {"tiled": TiledParams, "im2col": Im2colParams, "im2col_wide": Im2colWideParams}
_SHORTER_THAN_RANK = {"global_strides": 1, "pixel_box_lower_corner": 2, "pixel_box_upper_corner": 2}


def params_from_recording(recorded: Mapping[str, Any]) -> Params:
    """Return the parameters in a row of a recording.

    ``kind`` selects the class, and ``global_offset`` is an address. The driver reads the first ``rank`` entries of each
    array (``rank - 1`` strides, ``rank - 2`` corners). The function cuts longer arrays, and extends shorter arrays by
    zeros.

    >>> recorded = {"kind": "tiled", "data_type": 7, "rank": 2, "global_offset": 32, "global_dim": [4, 5, 0, 0, 0],
    ...             "global_strides": [16, 0, 0, 0], "box_dim": [4], "element_strides": [1, 1]}
    >>> params = params_from_recording(recorded)
    >>> params.global_address, params.global_dim, params.global_strides, params.box_dim
    (32, (4, 5), (16,), (4, 0))
    """
    kind: Any = _KINDS[recorded["kind"]]

    def as_the_driver_reads(name: str, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        length = max(0, recorded["rank"] - _SHORTER_THAN_RANK.get(name, 0))
        return tuple(value[:length]) + (0,) * (length - len(value))

    fields = {"global_address": recorded.get("global_offset", 0)} | dict(recorded)
    return kind(
        **{name: as_the_driver_reads(name, v) for name, v in fields.items() if name in kind.__dataclass_fields__}
    )
