"""Select the rows of a recording that the tests keep.

Rows of encodes are grouped by the one rule that they break, or by their kind if the driver accepts them. The script
keeps the first few rows of each group. Loads and stores are grouped by everything that can change the outcome. The
script keeps the smallest row of each group without its payload.

Examples
--------
    python select_rows.py encodes|loads|stores RECORDING.jsonl.gz [RECORDING.jsonl.gz ...] TARGET.jsonl.gz
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path

from recordings import first_of_each, params_from_recording, read, write

from cuda_tma._data_type import element_bits
from cuda_tma.rules import check
from cuda_tma.smem import smem_bytes

REFUSED_PER_RULE, ACCEPTED_PER_KIND = 60, 2
KEPT = {
    "loads": ("params", "coordinates", "offsets", "fault", "window_bytes", "smem_sha256", "written_mask_sha256"),
    "stores": ("params", "coordinates", "op", "values", "smem_seed", "fault", "memory_sha256"),
}


def encodes(rows: Iterable[dict]) -> Iterator[dict]:
    """Return the first rows of each kind, with arrays cut to the rank."""
    seen: Counter[Hashable] = Counter()
    for row in rows:
        params = params_from_recording(row["params"])
        arrays = {name: list(getattr(params, name)) for name, value in row["params"].items() if isinstance(value, list)}
        row = row | {"params": row["params"] | arrays}
        kind, wanted = _kind(row)
        seen[kind] += 1
        if seen[kind] <= wanted:
            yield row


def _kind(row: dict) -> tuple[Hashable, int]:
    """Return the group of a row, and the number of rows to keep of that group."""
    p = row["params"]
    if row["result"] == 0:
        return (p["kind"], p["data_type"], p["rank"], p["interleave"], p["swizzle"]), ACCEPTED_PER_KIND
    broken = check(params_from_recording(p), tuple(row.get("compute_capability", (9, 0))))
    if p["kind"] == "im2col_wide" or len(broken) != 1:
        return (p["kind"], "several"), REFUSED_PER_RULE
    return (p["kind"], broken[0].rule, broken[0].index), REFUSED_PER_RULE


def loads(rows: Iterable[dict]) -> Iterator[dict]:
    """Return the smallest load of each group. A window smaller than an interleaved load is a limit of the recorder."""

    def group(row: dict) -> Hashable:
        p = row["params"]
        strided = any(step > 1 for step in p["element_strides"][: p["rank"]])
        # For one data type of each kind, the selection contains every rank.
        rank = p["rank"] if p["data_type"] in (0, 7, 9, 11) else None
        keys = ("kind", "data_type", "swizzle", "interleave", "oob_fill")
        return (*(p[key] for key in keys), rank, strided, row.get("fault"))

    def is_whole(row: dict) -> bool:
        if row["params"]["kind"] != "tiled" or not row["params"]["interleave"]:
            return True
        return "fault" not in row and smem_bytes(params_from_recording(row["params"])) <= row["window_bytes"]

    ordered = sorted(filter(is_whole, rows), key=lambda row: row.get("window_bytes", 0))
    yield from _without_payload(first_of_each(group, ordered), KEPT["loads"])


def stores(rows: Iterable[dict]) -> Iterator[dict]:
    """Return one store of each group, which has the smallest change, or the largest change if the values were
    chosen."""

    def what(row: dict) -> Hashable:
        p = row["params"]
        return row["op"], p["data_type"], p["kind"], bool(p["interleave"]), row["values"], row.get("fault")

    def where(row: dict) -> Hashable:
        p = row["params"]
        strided = any(step > 1 for step in p["element_strides"])
        whole = bool(p["interleave"] or p["global_dim"][0] * element_bits(p["data_type"]) % 128 == 0)
        layout = p["kind"], p["swizzle"], p["interleave"], p["rank"]
        return *layout, strided, whole, row["op"] == "load", row.get("fault")

    def order(row: dict) -> tuple[bool, int]:
        changed = row.get("changed_bytes", 0)
        return changed == 0, changed if row["values"] == "random" else -changed

    shown = sorted((row for row in rows if "refused" not in row), key=order)
    chosen = [*first_of_each(what, shown), *first_of_each(where, shown)]
    yield from _without_payload({id(row): row for row in chosen}.values(), KEPT["stores"])


def _without_payload(rows: Iterable[dict], kept: tuple[str, ...]) -> Iterator[dict]:
    for row in rows:
        yield {key: row[key] for key in kept if key in row}


def main(name: str, *paths: str) -> None:
    *sources, target = paths
    select = {"encodes": encodes, "loads": loads, "stores": stores}[name]
    rows = list(select(row for source in sources for row in read(source)))
    write(target, rows)
    print(f"{len(rows)} rows, {Path(target).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
