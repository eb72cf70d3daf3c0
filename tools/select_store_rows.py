"""Choose the golden stores and reductions of the test suite from full sets of recordings.

    python tools/select_store_rows.py RECORDINGS.jsonl.gz [RECORDINGS.jsonl.gz ...] tests/data/stores_sm90.jsonl.gz

For what a recording is see ``record_stores.py``. Recordings are grouped twice, by what was computed (operation, data
type, kind, values, fault) and by where it went (kind, swizzle, interleave, rank, strided or not, whole 16 bytes a row
or not, fault), and one of each group is kept, without its payload: of those that changed memory, the one that changed
the least, or the most where it computed with chosen values. Cases that the driver's encoder refused are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from pathlib import Path

from recordings import first_of_each, read, write

from cuda_tma.data_type import element_bits

KEPT = ("params", "coordinates", "op", "values", "smem_seed", "fault", "memory_sha256")


def what(row: dict) -> Hashable:
    p = row["params"]
    return row["op"], p["data_type"], p["kind"], bool(p["interleave"]), row["values"], row.get("fault")


def where(row: dict) -> Hashable:
    p = row["params"]
    strided = any(step > 1 for step in p["element_strides"])
    whole = p["interleave"] or p["global_dim"][0] * element_bits(p["data_type"]) % 128 == 0
    layout = p["kind"], p["swizzle"], p["interleave"], p["rank"]
    return *layout, strided, bool(whole), row["op"] == "load", row.get("fault")


def order(row: dict) -> tuple:
    changed = row.get("changed_bytes", 0)
    return changed == 0, changed if row["values"] == "random" else -changed


def select(rows: list[dict]) -> list[dict]:
    shown = sorted((row for row in rows if "refused" not in row), key=order)
    chosen = [*first_of_each(what, shown), *first_of_each(where, shown)]
    once = {id(row): row for row in chosen}.values()
    return [{key: row[key] for key in KEPT if key in row} for row in once]


def main(*paths: str) -> None:
    *sources, target = paths
    rows = select([row for source in sources for row in read(source)])
    write(target, rows)
    print(f"{len(rows)} rows, {Path(target).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
