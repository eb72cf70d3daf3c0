"""Run random pipelines (``tests/pipelines``), which are right or lack one statement, and write the table of results.

``python fuzz_pipelines.py --count 1000 --seed 1`` writes ``docs/pipelines.md``. Each process runs one part of the
seeds, so the same count and seed give the same pipelines.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.pipelines import SCHEDULES, faults_of, pipelines, run  # noqa: E402

_PARTS = 20


@dataclass
class Tally:
    """The counts of several pipelines."""

    right: int = 0
    accused: list[str] = field(default_factory=list)
    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.right += other.right
        self.accused += other.accused
        self.missed += other.missed
        for name in ("planted", "found", "kinds"):
            getattr(self, name).update(getattr(other, name))


def part(count: int, number: int, every: int) -> Tally:
    """Run `count` pipelines of one seed. One of `every` pipelines has a fault."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(st.data())
    def one(data) -> None:
        pipeline = data.draw(pipelines())
        faults = faults_of(pipeline)
        fault = data.draw(st.sampled_from(faults)) if faults else None
        outcome = run(pipeline)
        tally.right += 1
        if not outcome.is_clean:
            tally.accused.append(f"{pipeline}\n{outcome}")
        if fault is not None and tally.right % every == 0:
            _plant(tally, pipeline, fault)

    one()
    return tally


def _plant(tally: Tally, pipeline, fault: str) -> None:
    outcome = run(pipeline, fault, until_error=True)
    tally.planted[fault] += 1
    kinds = {finding.kind for finding in outcome.errors}
    tally.found[fault] += bool(kinds)
    tally.kinds.update((fault, kind) for kind in kinds)
    if not kinds:
        wrong = "wrong output" if any(outcome.wrong.values()) else "right output"
        tally.missed.append(f"{fault} ({wrong}): {pipeline}")


def page(whole: Tally, arguments: argparse.Namespace, seconds: float) -> str:
    """Return the page with the results of the pipelines."""
    planted, found = sum(whole.planted.values()), sum(whole.found.values())
    rows = []
    for name, number in sorted(whole.planted.items()):
        kinds = [kind for fault, kind in sorted(whole.kinds) if fault == name]
        rows.append(f"| `{name}` | {number} | {whole.found[name]} | {', '.join(kinds)} |")
    missed = Counter(text.partition(": ")[0] for text in whole.missed)
    return _PAGE.format(
        right=whole.right, accused=len(whole.accused), schedules=len(SCHEDULES), seed=arguments.seed,
        count=arguments.count,
        every=arguments.fault_every, minutes=seconds / 60, workers=arguments.workers, planted=planted, found=found,
        share=100 * found / max(1, planted), rows="\n".join(rows),
        missed="\n".join(f"- {number} x {text}" for text, number in sorted(missed.items())) or "None was missed.",
    )  # fmt: skip


_PAGE = """# Random pipelines under the sanitizer

Written by `make fuzz ARGS="--count {count} --seed {seed} --fault-every {every}"`, in {minutes:.0f} minutes by
{workers} processes.

`tests/pipelines` generates kernels that are right by construction. The kernels write into a ring of stages by TMA loads
(tiled, im2col, multicast), bulk copies, `cp.async`, stores and `st.async`. The kernels read the stages by ordinary
loads, wgmma, TMA stores, reductions and bulk stores. The kernels release a stage in several ways, exchange data, run
epilogues, and pass data between CTAs of a cluster or grid. Each kernel runs under {schedules} schedules with
`strict=True`, and a test compares its output.

**No false alarm**: {right} pipelines, {accused} with a finding or a wrong output.

**Planted faults**: in one pipeline of {every} a necessary statement is missing or changed (`tests/pipelines/faults.py`
lists the faults). {found} of {planted} are found, {share:.1f} %.

| left out | planted | found | kinds |
|---|---:|---:|---|
{rows}

Missed:

{missed}
"""


def main() -> None:
    """Run the pipelines, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fault-every", type=int, default=1, help="one pipeline of this many has a planted fault (default: 1)"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pipelines.md")
    arguments = parser.parse_args()
    start, whole = time.monotonic(), Tally()
    each = -(-arguments.count // _PARTS)
    with ProcessPoolExecutor(arguments.workers) as pool:
        numbers = [arguments.seed * _PARTS + number for number in range(min(_PARTS, arguments.count))]
        for tally in pool.map(part, [each] * len(numbers), numbers, [arguments.fault_every] * len(numbers)):
            whole.add(tally)
            for text in [
                *(f"accused: {text}" for text in tally.accused),
                *(f"missed: {text}" for text in tally.missed),
            ]:
                print(text)
            print(f"{whole.right} pipelines, {len(whole.accused)} accused, {len(whole.missed)} missed", flush=True)
    arguments.output.write_text(page(whole, arguments, time.monotonic() - start))
    sys.exit(bool(whole.accused))


if __name__ == "__main__":
    main()
