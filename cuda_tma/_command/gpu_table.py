"""The table of the launches of a program on a GPU, with counts, comparisons with the simulator, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .outcome import Outcome, counted

if TYPE_CHECKING:
    from .._intercept.on_gpu.messages import Counts
    from .._intercept.on_gpu.table import KernelCounts

__all__ = ["comparisons", "gpu_document", "gpu_lines"]

_MOST_ROWS = 50
_LEFT_OUT = {
    "alike": "of a configuration that was judged",
    "in_graphs": "captured into graphs",
    "other_configurations": "of further configurations",
    "not_captured": "that reach too much memory",
}


def comparisons(outcome: Outcome) -> dict[str, int]:
    """Count the launches for each result of a comparison, such as ``"equal"``."""
    counts = Counter(launch.hardware.partition(":")[0] for launch in outcome.judged if launch.hardware)
    return dict(counts.most_common())


def gpu_document(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the table as a JSON document, with an entry for each process."""
    return [
        {
            "gpu": table.gpu,
            "driver_version": table.driver_version,
            "kernels": [
                {"kernel": each.name, "reason": each.reason or None, **each.counts._asdict()} for each in table.kernels
            ],
        }
        for table in outcome.tables
    ]


def gpu_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of the table as text."""
    for table in outcome.tables:
        rows = sorted(table.kernels, key=lambda each: -each.counts.launches)
        yield f"on {table.gpu}: {_launches_of(rows)}"
        judged = [row for row in rows if not row.reason]
        yield from (f"  {row.name}: {_described(row.counts)}" for row in judged[:_MOST_ROWS])
        if len(judged) > _MOST_ROWS:
            yield f"  {_launches_of(judged[_MOST_ROWS:])} more"
        for reason in dict.fromkeys(row.reason for row in rows if row.reason):
            left_out = [row for row in rows if row.reason == reason]
            yield f"  {_launches_of(left_out)} not judged: {reason.splitlines()[0]}"
    yield from _summary(outcome)


def _launches_of(rows: Sequence[KernelCounts]) -> str:
    launches = counted(sum(row.counts.launches for row in rows), "launch", "launches")
    return f"{launches} of {counted(len(rows), 'kernel', 'kernels')}"


def _described(counts: Counts) -> str:
    parts = [counted(counts.launches, "launch", "launches"), f"{counts.judged} judged"]
    named = ((getattr(counts, name), text) for name, text in _LEFT_OUT.items())
    return ", ".join([*parts, *(f"{number} {text}" for number, text in named if number)])


def _summary(outcome: Outcome) -> Iterator[str]:
    found = comparisons(outcome)
    if found:
        yield "compared with the simulator: " + ", ".join(f"{number} {result}" for result, number in found.items())
    rows = [each.counts for table in outcome.tables for each in table.kernels]
    judged, added = sum(each.judged for each in rows), sum(each.nanoseconds for each in rows)
    seconds = sum(launch.seconds for launch in outcome.judged_launches)
    if judged:
        yield (
            f"cost of a judged launch: {added / judged / 1e6:.1f} ms in the program, "
            f"{seconds / max(len(outcome.judged_launches), 1):.2f} s in the simulator"
        )
