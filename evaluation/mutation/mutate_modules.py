"""Find faults of the package's modules that its tests do not detect.

The script tries random mutants, and lists the survivors.

The command ``python evaluation/mutation/mutate_modules.py --count 300 --workers 16`` copies the repository for each
worker, runs the tests once, and then runs the tests of each mutant. The command writes ``results.json``,
``survivors.diff`` and ``baseline.json`` into ``--output``. ``--baseline`` uses the ``baseline.json`` of an earlier run.
``--again`` tries the survivors of a ``results.json`` in place of new mutants. The file ``equivalent.txt`` lists mutants
that change no behavior, with the reasons.
"""

from __future__ import annotations

import argparse
import compileall
import difflib
import json
import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from evaluation.mutation.draw import area_of, drawn, every_mutant  # noqa: E402
from evaluation.mutation.operators import Mutant  # noqa: E402
from evaluation.mutation.trials import Folder, Trial, baseline_of, test_files, tried  # noqa: E402

T = TypeVar("T")
# The values of the keys in KEY identify a mutant, even after a change of other lines.
KEY = ("path", "function", "kind", "before", "after")


def in_folders(folders: list[Folder], work: Callable[[Folder, T], Any], values: Iterable[T], until: float) -> Iterator:
    """Yield each value with its result when the result is known. After the time `until`, begin no further value."""
    free: queue.SimpleQueue[Folder] = queue.SimpleQueue()
    for folder in folders:
        free.put(folder)

    def one(value: T) -> Any:
        if time.monotonic() > until:
            return None
        folder = free.get()
        try:
            return work(folder, value)
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        jobs = {pool.submit(one, value): value for value in values}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def baseline(folders: list[Folder], glob: str) -> dict[str, Any]:
    """Run the test files without a mutant, those of a folder together."""
    files = test_files(folders[0].path, glob)
    groups = [tuple(group) for _, group in groupby(files, lambda file: file.rpartition("/")[0])]
    known = {file: values for _, found in in_folders(folders, baseline_of, groups, float("inf"))
             for file, values in found.items()}  # fmt: skip
    times = [took for values in known.values() for took, _ in values["tests"].values()]
    failed, bad = sum(len(each["failed"]) for each in known.values()), [f for f in files if not known[f]["tests"]]
    print(f"{len(files)} files, {len(times)} tests, {sum(times):.0f} s; left out: {failed} failing tests, and {bad}")
    return {file: known[file] for file in files}


def again(root: Path, results: Path) -> list[Mutant]:
    """Return the survivors of an earlier run, which are identified by their text."""
    rows = [row for row in json.loads(results.read_text())["mutants"] if row["outcome"] != "killed"]
    present: dict[tuple, Mutant] = {}
    for mutant in (mutant for path in sorted({row["path"] for row in rows}) for mutant in every_mutant(root, path)):
        present.setdefault(tuple(getattr(mutant, name) for name in KEY), mutant)
    return [present[key] for key in (tuple(row[name] for name in KEY) for row in rows) if key in present]


def equivalents() -> dict[tuple[str, ...], str]:
    """Return the mutants in equivalent.txt, each with its reason."""
    lines = (Path(__file__).parent / "equivalent.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {tuple(row[:3]): row[3] for row in rows}


def row_of(trial: Trial, known: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """Return the line of a mutant in the results."""
    values = trial.mutant._asdict()
    values.pop("edits")
    key = (trial.mutant.path, trial.mutant.before, trial.mutant.after)
    outcome = "equivalent" if trial.outcome != "killed" and key in known else trial.outcome
    return {**values, "outcome": outcome, "by": trial.by, "tests": trial.tests, "seconds": round(trial.seconds, 1)}


def diff_of(root: Path, mutant: Mutant) -> str:
    """Return a mutant as a unified diff."""
    source = (root / mutant.path).read_bytes()
    texts = [text.decode().splitlines(keepends=True) for text in (source, mutant.applied(source))]
    return "".join(difflib.unified_diff(*texts, f"a/{mutant.path}", f"b/{mutant.path}"))


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the counts of the outcomes by area, and the share of killed mutants."""
    areas: dict[str, Counter[str]] = {}
    for row in rows:
        for name in (area_of(row["path"]), "guards" if row["guard"] else "others", "all"):
            areas.setdefault(name, Counter())[row["outcome"]] += 1
    lines = []
    for name, counts in sorted(areas.items()):
        valid = counts.total() - counts["equivalent"]
        share = 100 * counts["killed"] / max(1, valid)
        lines.append(f"{name:24}{counts['killed']:5} of {valid:5} killed ({share:.1f} %) {dict(counts)}")
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--modules", default="*", help="a pattern of paths, for example 'cuda_tma/simulate/*'")
    parser.add_argument("--tests", default="*", help="a pattern of the paths of test files")
    parser.add_argument("--each", type=float, default=40.0, help="seconds of tests for one mutant")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after this time")
    parser.add_argument("--extensions", type=Path, help="a folder with cuda_tma of a wheel for this Python")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--baseline", type=Path, help="a baseline.json of an earlier run of the same tests")
    parser.add_argument("--again", type=Path, help="a results.json, whose survivors are tried again")
    return parser.parse_args()


def main() -> int:
    """Try the mutants, and write the results."""
    options, began = parsed(), time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutation") as place:
        first = Folder.copied(ROOT, Path(place, "0"), options.extensions)
        compileall.compile_dir(first.path, quiet=2)
        folders = [first, *(Folder.copied(first.path, Path(place, f"{i}"), None) for i in range(1, options.workers))]
        known = json.loads(options.baseline.read_text()) if options.baseline else baseline(folders, options.tests)
        (options.output / "baseline.json").write_text(json.dumps(known))
        print(f"the baseline is there after {time.monotonic() - began:.0f} s", flush=True)
        if options.again:
            mutants = again(first.path, options.again)
        else:
            mutants = drawn(first.path, options.count, options.seed, options.modules)
        rows = written(folders, mutants, known, options, began)
    print(summary(rows))
    print(f"{len(rows)} mutants in {time.monotonic() - began:.0f} s; see {options.output}")
    return 0


def written(folders: list[Folder], mutants: list[Mutant], known: dict[str, Any], options: argparse.Namespace,
            began: float) -> list[dict[str, Any]]:  # fmt: skip
    """Try the mutants, and write each result to disk at once."""
    rows, diffs, equal = [], [], equivalents()

    def work(folder: Folder, mutant: Mutant) -> Trial:
        return tried(folder, mutant, known, options.each)

    for mutant, trial in in_folders(folders, work, mutants, began + options.seconds):
        if trial is None:
            continue
        rows.append(row_of(trial, equal))
        if rows[-1]["outcome"] not in ("killed", "equivalent"):
            title = f"# {rows[-1]['outcome']}: {mutant.kind} in {mutant.function}, tested by {trial.tests} tests"
            diffs.append(f"{title}\n{diff_of(ROOT, mutant)}")
            print(diffs[-1], flush=True)
            (options.output / "survivors.diff").write_text("\n".join(diffs))
        results = {"seed": options.seed, "drawn": len(mutants), "mutants": rows}
        (options.output / "results.json").write_text(json.dumps(results, indent=1))
    return rows


if __name__ == "__main__":
    sys.exit(main())
