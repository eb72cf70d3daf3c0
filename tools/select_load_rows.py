"""Choose the golden loads of the test suite from a full set of recordings.

    python tools/select_load_rows.py RECORDINGS.jsonl.gz tests/data/loads_sm90.jsonl.gz

A recording is one TMA load on hardware: parameters in driver order, coordinates, and either the SHA-256 of the shared
memory and of its written mask, or the CUDA error that ended the context. Recordings are grouped by what can differ
(kind, data type, rank, swizzle, interleave, fill, strided or not, fault), and the smallest of each group is kept,
without their payloads. Interleaved tiled recordings whose window was smaller than the load are left out: what they
show is the recorder's limit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from recordings import first_of_each, read, write

from cuda_tma.smem import smem_bytes
from cuda_tma.testing import params_from_recording

KEPT = ("params", "coordinates", "offsets", "fault", "window_bytes", "smem_sha256", "written_mask_sha256")


def group(row: dict) -> tuple:
    p = row["params"]
    strided = any(step > 1 for step in p["element_strides"][: p["rank"]])
    rank = p["rank"] if p["data_type"] in (0, 7, 9, 11) else None  # every rank for one type of each kind
    keys = ("kind", "data_type", "swizzle", "interleave")
    return (*(p[key] for key in keys), p["oob_fill"], rank, strided, row.get("fault"))


def shows_hardware(row: dict) -> bool:
    """Whether the row shows what hardware does, not that the recorder's window was too small."""
    if row["params"]["kind"] != "tiled" or not row["params"]["interleave"]:
        return True
    return "fault" not in row and smem_bytes(params_from_recording(row["params"])) <= row["window_bytes"]


def select(rows: list[dict]) -> list[dict]:
    chosen = first_of_each(group, sorted(filter(shows_hardware, rows), key=size))
    return [{key: row[key] for key in KEPT if key in row} for row in chosen]


def size(row: dict) -> int:
    return row.get("window_bytes", 0)


def main(source: str, target: str) -> None:
    rows = select(read(source))
    write(target, rows)
    print(f"{len(rows)} rows, {Path(target).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
