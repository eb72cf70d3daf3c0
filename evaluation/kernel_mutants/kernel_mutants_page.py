"""``build/mutants.md``: what became of the mutants of kernels, and of each that is not found, why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_outcomes import EQUIVALENT, FAR, FOUND, MISSED, VALUES, judged, share

__all__ = ["as_drawn", "far", "page", "reasons_in", "shares"]

Reasons = Mapping[str, tuple[str, str]]
DRAWN = -1  # in the place of a batch: as it was when it was drawn
_HEAD = """# Mutants of kernels

Made by `python mutate_kernels.py page`, from `mutants.jsonl.gz`; not edited by hand.

A mutant is a small fault of synchronisation that a program puts into the kernels of `examples/`, `tests/gpu` and
`tests/real_bugs`, or into the device header: a fence, wait, arrival, barrier, commit or wait for groups dropped, or
exchanged with the statement beside it; a count, parity, number of bytes, scope, proxy, stage, mask, depth or number of
turns changed. Each is run on the simulator at a size at which rings go round, under four schedules. It counts as found
if a finding, an error or advice, is of a kind that was right for its mutator before anything was run (`EXPECTED` in
`kernel_mutators.py`), and a line of it lies within three of the changed one: of the statement, of the other
access, or of a statement that the finding names to explain itself; where the changed line is inlined, of the calls that
lead to it, in the innermost function that both have in common (`kernel_outcomes.py`).

Equivalent are those of which ptxas makes the same instructions, and those with a proof below. Those that change values
alone (which bytes are loaded, not what is waited for) are told by what they leave in memory: nothing is found, and
under each schedule the same other bytes. Twenty of the proofs of the first three batches were drawn by lot and gone
through again: one did not hold (b960c1d8), and neither did one like it (a7d0ea58). Both are missed now: they take an
order of threads or copies that nothing but luck brings, as do two of the fourth batch (307f602f, f0b72d49).

There are four batches. The first was there while the sanitizer was mended by what it showed; the second was drawn with
another seed, of other lines, after sanitizer and tool had been frozen: 92.5 % of each were found then. The third was
drawn after a second freeze, of `examples/attention.py`, `examples/gather_rows.py` and tests of the header: 62 of 83
were found, 74.7 %, and 67, 80.7 %, with launches of the two examples in which rings go round. What these missed has
since made findings see and name more, and they are no longer unseen. So sanitizer, tool and launches were frozen a
third time, and a fourth batch drawn, of kernels that no mutant had been made of before: `examples/gemm_every_shape.py`,
the lines of `examples/grouped_gemm.py` that had none, more tests of the header, kernels of `tests/pipelines`, of
`test_copies.py` and `test_third_party.py`, and what of the header they alone reach. What
was found of it then has a line of its own. Since then findings of an mbarrier that is used too early name the fence of
initialisations, `examples/gather_rows.py` has a launch in which its ring goes round, and a warp is taken to meet at
`tensormap.cp_fenceproxy`, which made three mutants equivalent. All four were tried again with that, and none is carried
over; those whose lines are no longer there are left out.
"""
_BATCHES = (
    ("the first", 1), ("the second", 2), ("the third", 3), ("the fourth, unseen, as drawn", DRAWN),
    ("the fourth, tried again", 4), ("together, tried again", 0),
)  # fmt: skip
_FAR = """The last column counts what is found by a finding of a right kind, wherever its lines are: mostly what is
missing is said at the line that needs it, further from the one that lacks it.
"""


def reasons_in(text: str) -> dict[str, tuple[str, str]]:
    """Of each mutant judged by hand: `equivalent`, `values` or `missed`, and why.

    >>> reasons_in("0a1b2c3d equivalent: no thread reads it")
    {'0a1b2c3d': ('equivalent', 'no thread reads it')}
    """
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = re.fullmatch(r"([0-9a-f]{8}) (equivalent|values|missed): (\S.*)", line)
        if match is None:
            raise SystemExit(
                f"no reason: {line!r}; a line is `ID equivalent: why`, `ID values: why` or `ID missed: why`"
            )
        found[match[1]] = match[2], match[3]
    return found


def page(rows: Sequence[dict], reasons: Reasons) -> str:
    """The whole of it."""
    parts = [_HEAD, shares(rows, reasons), _by_mutator(rows, reasons), *_not_found(rows, reasons)]
    return "\n".join(parts)


def far(rows: Sequence[dict], reasons: Reasons) -> int:
    """How many of those that are missed have a finding of a right kind, and no line near."""
    return sum(row["outcome"] == FAR and judged(row, reasons) == MISSED for row in rows)


def as_drawn(rows: Sequence[dict]) -> list[dict]:
    """Those of which it is kept what became of them when they were drawn, as they were then."""
    return [row | {"outcome": row["drawn"]} for row in rows if "drawn" in row]


def shares(rows: Sequence[dict], reasons: Reasons) -> str:
    lines = [
        "| | mutants | equivalent | values alone | of the others found | share | found, near or far |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, some in _BATCHES:
        chosen = [row for row in rows if not some or row["batch"] == some] if some != DRAWN else as_drawn(rows)
        counts = Counter(judged(row, reasons) for row in chosen)
        found, asked = share(chosen, reasons)
        lines.append(
            f"| {name} | {len(chosen)} | {counts[EQUIVALENT]} | {counts[VALUES]} | {found} of {asked} | "
            f"{found / max(asked, 1):.1%} | {(found + far(chosen, reasons)) / max(asked, 1):.1%} |"
        )
    return "\n".join(["## How many\n", *lines, "", _FAR])


def _by_mutator(rows: Sequence[dict], reasons: Reasons) -> str:
    lines = ["## By mutator\n", "| mutator | mutants | found | equivalent or values alone | missed | kinds |"]
    lines.append("|---|---:|---:|---:|---:|---|")
    for mutator in sorted({row["mutator"] for row in rows}):
        some = [row for row in rows if row["mutator"] == mutator]
        counts = Counter(judged(row, reasons) for row in some)
        kinds = Counter(row["kind"] for row in some if row["outcome"] == FOUND)
        apart = counts[EQUIVALENT] + counts[VALUES]
        told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        missed = len(some) - counts[FOUND] - apart
        lines.append(f"| `{mutator}` | {len(some)} | {counts[FOUND]} | {apart} | {missed} | {told} |")
    return "\n".join([*lines, ""])


def _not_found(rows: Sequence[dict], reasons: Reasons) -> list[str]:
    """One by one."""
    pieces = []
    titles = {"missed": "## Missed\n", EQUIVALENT: "## Equivalent\n", VALUES: "## Values alone\n"}
    for verdict, title in titles.items():
        some = [row for row in rows if judged(row, reasons) == verdict]
        lines = [title, "| mutant | where | change | why |", "|---|---|---|---|"]
        lines += [_line(row, reasons) for row in sorted(some, key=lambda row: (row["path"], row["line"], row["id"]))]
        pieces.append("\n".join([*lines, ""]))
    return pieces


def _line(row: dict, reasons: Reasons) -> str:
    by_itself = {
        "identical SASS": "ptxas makes the same instructions",
        "values": "other bytes, the same at all schedules",
    }
    _, why = reasons.get(row["id"], ("", by_itself.get(row["outcome"], row["outcome"])))
    what = row["what"].replace("|", "\\|").replace("`", "'")
    where = row["path"] if row["path"] == row["subject"] else f"{row['path']}, in {Path(row['subject']).name}"
    return f"| {row['id']} | {where}, line {row['line']} | {row['mutator']}: `{what}` | {why} |"
