"""Select a few thousand of the recorded encoder calls for the tests: boundaries first, then a spread of what is legal.

python tools/select_encode_rows.py RECORDING.jsonl.gz tests/data/encode_sm90.jsonl.gz
"""

import sys
from collections import Counter

from recordings import read, write

from cuda_tma.rules import check
from cuda_tma.testing import params_from_recording

REFUSED_PER_RULE = 60  # of each rule, mode and index: rows that break it and nothing else
ACCEPTED_PER_KIND = 2  # of each mode, data type, rank, interleave and swizzle


def exact(row):
    """The row with its arrays cut to the rank, or filled with zeros: what the driver saw."""
    seen = params_from_recording(row["params"])
    arrays = {name: list(getattr(seen, name)) for name, value in row["params"].items() if isinstance(value, list)}
    return row | {"params": row["params"] | arrays}


def kind_of(row):
    """(what the row shows, how many of that are wanted)."""
    p = row["params"]
    if row["result"] == 0:
        return (p["kind"], p["data_type"], p["rank"], p["interleave"], p["swizzle"]), ACCEPTED_PER_KIND
    broken = check(params_from_recording(p), tuple(row.get("compute_capability", (9, 0))))
    if p["kind"] == "im2col_wide" or len(broken) != 1:
        return (p["kind"], "several"), REFUSED_PER_RULE
    return (p["kind"], broken[0].rule, broken[0].index), REFUSED_PER_RULE


def select(rows):
    """The first rows of each kind."""
    seen = Counter()
    for row in rows:
        kind, wanted = kind_of(row)
        seen[kind] += 1
        if seen[kind] <= wanted:
            yield row


def main(source, target):
    rows = list(select(map(exact, read(source))))
    write(target, rows)
    print(f"{len(rows)} rows, {sum(row['result'] == 0 for row in rows)} of them accepted")


if __name__ == "__main__":
    main(*sys.argv[1:])
