"""Find the layout of an mbarrier's word from recordings, without a GPU.

``record_barriers.py`` describes a recording.

Examples
--------
    python replay_barriers.py barriers_sm90.jsonl.gz      # the bits of each field, and undefined cases
"""

from __future__ import annotations

import sys

import numpy as np
from barrier_cases import states
from recordings import read

from cuda_tma.barrier import BARRIER_FIELDS, Barrier, BarrierField, decode_barrier

_SIGNED = ("tx_count",)


def observed(rows: list[dict]) -> tuple[list[Barrier], list[int]]:
    """Return the barrier after each step with a defined outcome, and its word if the word is known."""
    pairs = [
        (barrier, int(word, 16))
        for row in rows
        if "case" in row
        for barrier, word in zip(
            states([(name, number) for name, number in row["operations"]]), row["words"], strict=False
        )
        if word
    ]
    return [barrier for barrier, _ in pairs], [word for _, word in pairs]


def layout(barriers: list[Barrier], words: list[int]) -> tuple[BarrierField, ...]:
    """Return for each count the longest run of bits that always contains the count, directly or negated."""
    bits, names = np.array(words, np.uint64), [field.name for field in BARRIER_FIELDS]
    return tuple(_place(name, np.array([getattr(barrier, name) for barrier in barriers]), bits) for name in names)


def _place(name: str, values: np.ndarray, words: np.ndarray) -> BarrierField:
    possible = [
        BarrierField(name, low, min(_width(stored, words >> np.uint64(low)), 64 - low), negated, name in _SIGNED)
        for negated, stored in ((False, values), (True, -values))
        for low in range(64)
    ]
    return max(possible, key=lambda field: field.width)


def _width(values: np.ndarray, words: np.ndarray) -> int:
    """Return the number of low bits that are always equal."""
    differ = int(np.bitwise_or.reduce(values.astype(np.int64).view(np.uint64) ^ words))
    return (differ & -differ).bit_length() - 1 if differ else 64


def show(row: dict) -> None:
    """Print a row that is not one of the defined cases."""
    print({key: value for key, value in row.items() if key not in ("words", "operations")})
    for (name, number), word in zip(row.get("operations", ()), row.get("words", ()), strict=False):
        print(f"  {name} {number}: {word} {decode_barrier(int(word, 16))}")


def main() -> None:
    rows = read(sys.argv[1])
    barriers, words = observed(rows)
    print(f"{len(words)} words, {len(set(words))} different")
    print(*layout(barriers, words), sep="\n")
    pairs = [(barrier, decode_barrier(word)) for barrier, word in zip(barriers, words, strict=True)]
    others = [f"{found} should be {barrier}" for barrier, found in pairs if found != barrier]
    print(f"{len(others)} differ from cuda_tma.barrier", *others[:10], sep="\n  ")
    for row in rows:
        if "case" not in row:
            show(row)


if __name__ == "__main__":
    main()
