"""Compare the sanitizer with an exhaustive search (``race_programs.py``) on random tiny programs.

``python fuzz_races.py --count 10000 --seed 1`` lists each program whose verdicts differ. The script ends with status 1
if the sanitizer reports a pair of accesses that do not race, a wrong deadlock, or another kind of finding. A missed
race is listed and counted. ``--only 4711`` runs only the program of that seed, and prints its PTX and its findings.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from cuda_tma import simulate  # noqa: E402
from evaluation.fuzzing.race_programs import FLAGS, WORDS, Operation, Program, judged, random_program  # noqa: E402
from evaluation.fuzzing.race_ptx import NAME, ptx_of  # noqa: E402

__all__ = ["Compared", "compared", "report_of"]

_STUCK = {"deadlock", "no-progress"}
_SECONDS = 20.0  # A program has a time limit of 20 seconds.


class Compared(NamedTuple):
    """The verdicts on a program. `outcome` is a right result or a miss, and `faults` contains errors of the
    sanitizer."""

    seed: int
    outcome: str
    faults: tuple[str, ...] = ()


def report_of(program: Program, schedules: int) -> simulate.Report:
    """Run a program on the simulator, and return the report."""
    gpu = simulate.Device(schedules=schedules, time_limit=_SECONDS)
    number = len(program.threads)
    config = simulate.Config(number, 32) if program.space == "global" else simulate.Config(1, 32 * number)
    memory, out = np.zeros(4 + WORDS + FLAGS, np.uint32), np.zeros(16 * number, np.uint32)
    return gpu.launch(config, gpu.load(ptx_of(program)[0], NAME), memory, out)


def compared(seed: int, schedules: int = 1) -> Compared:
    """Return the verdicts on the program of a seed."""
    program = random_program(seed)
    right, report, places = judged(program), report_of(program, schedules), ptx_of(program)[1]
    findings = [each for each in report.findings if each.kind == "race"]
    pairs = {frozenset({places.get(each.ptx_line), places.get(each.other_ptx_line)}) for each in findings}
    kinds = {each.kind for each in report.findings}
    faults = [f"a pair that does not race: {sorted(map(str, pair))}" for pair in pairs - right.races]
    faults += [f"a finding of another kind: {kind}" for kind in sorted(kinds - _STUCK - {"race"})]
    if bool(kinds & _STUCK) != right.blocks:
        faults.append(
            "a deadlock is reported, and none is possible" if kinds & _STUCK else "a deadlock is not reported"
        )
    if not right.races or pairs:
        outcome = "found" if pairs else "clean"
    elif right.blocks:
        outcome = "missed after a deadlock"
    else:
        outcome = "missed" if any(not _is_hidden(program, pair) for pair in right.races) else "missed after an atomic"
    return Compared(seed, outcome, tuple(faults))


def _is_hidden(program: Program, pair: frozenset[tuple[int, int]]) -> bool:
    """Return whether an atomic operation on the same word by one of the two threads may hide a race.

    An atomic operation observes earlier atomic operations, and statements that depend on its value are ordered after
    them. An example is the block that increments a counter last, and then resets the counter. The sanitizer does not
    check whether a later access depends on the value.
    """
    (one, at), (other, there) = pair
    add = Operation("add", program.threads[one][at].number)
    pairs = ((one, at), (other, there))
    return any(add in (*program.threads[t][:i], *program.threads[t][i + 1 :]) for t, i in pairs)


def main() -> int:
    """Compare the verdicts on the programs of a range of seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first program is number 1,000,000 times this")
    parser.add_argument("--schedules", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this time")
    parser.add_argument("--only", type=int, help="run the program of this number alone")
    arguments = parser.parse_args()
    if arguments.only is not None:
        return _shown(arguments.only, arguments.schedules)
    first, until = arguments.seed * 1_000_000, time.monotonic() + arguments.seconds
    outcomes: Counter[str] = Counter()
    faults = 0
    with ProcessPoolExecutor(arguments.workers) as pool:
        for begun in range(first, first + arguments.count, 200):
            numbers = range(begun, min(begun + 200, first + arguments.count))
            for each in pool.map(partial(compared, schedules=arguments.schedules), numbers, chunksize=20):
                outcomes[each.outcome] += 1
                faults += bool(each.faults)
                if each.faults or each.outcome == "missed":
                    print(each.seed, each.outcome, *each.faults, sep="; ", flush=True)
            if time.monotonic() > until:
                break
    print(f"{outcomes.total()} programs, {faults} with a wrong finding; {dict(outcomes)}")
    return bool(faults)


def _shown(seed: int, schedules: int) -> int:
    program = random_program(seed)
    print(*enumerate(ptx_of(program)[0].splitlines(), 1), program, judged(program), sep="\n")
    print(report_of(program, schedules), compared(seed, schedules), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
