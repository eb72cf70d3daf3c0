"""Run the test suites of cuda.core and cuda.bindings on the driver library of ``cuda-tma sanitize``, without a GPU.

Each file of tests runs below the command in a separate process. The script compares the counts with the counts in
cuda_python_tests.json. A smaller number of tests that pass is a failure.

Examples
--------
    git clone https://github.com/NVIDIA/cuda-python && git -C cuda-python checkout COMMIT   # of the JSON file
    pip install REQUIREMENTS                                                                # of the JSON file
    python evaluation/run_cuda_python_tests.py cuda-python [--write] [FILE ...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = Path(__file__).with_name("cuda_python_tests.json")
ROOT = Path(__file__).parent.parent
SECONDS = 600  # The time limit of each test file is ten minutes.
OUTCOMES = ("passed", "failed", "skipped")
# The installed cuda.bindings lacks the modules that its own tests need, so the plugin adds them to its path.
PLUGIN = "import cuda.bindings\ncuda.bindings.__path__.append({folder!r})\n"
_FIGURE = re.compile(r"0x[0-9a-fA-F]+|\b\d+\b")


@dataclass
class Counts:
    """The tests of a file by outcome, and the reasons for the tests that did not pass."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        self.outcomes += other.outcomes
        self.reasons += other.reasons


def test_files(clone: Path) -> list[Path]:
    """Return the files of tests.

    The function omits tests of the system, of graphics and of builds, which need other libraries.
    """
    left_out = ("cython", "nvml", "cufile", "cudla", "system", "example", "build_hooks", "legacy")
    found = [
        path for each in ("cuda_bindings", "cuda_core") for path in sorted((clone / each / "tests").rglob("test_*.py"))
    ]
    return [path for path in found if not any(name in str(path.relative_to(clone)) for name in left_out)]


def counts_of(document: Path) -> Counts:
    """Read the counts from a document that pytest wrote."""
    counts = Counts()
    for case in ElementTree.parse(document).getroot().iter("testcase"):
        ends = [
            (child.tag, child.get("message") or "") for child in case if child.tag in ("failure", "error", "skipped")
        ]
        outcome = "passed" if not ends else "skipped" if ends[0][0] == "skipped" else "failed"
        counts.outcomes[outcome] += 1
        if ends:
            counts.reasons[f"{outcome}: {reason_of(ends[0][1])}"] += 1
    return counts


def reason_of(message: str) -> str:
    """Return the first line of a message without its figures, so that equal reasons are counted together."""
    first = next((line for line in message.splitlines() if line.strip()), "no message")
    return _FIGURE.sub("N", first)[:100]


def run(file: Path, clone: Path, folder: Path) -> Counts:
    """Run a file of tests below the command."""
    document = folder / "tests.xml"
    document.unlink(missing_ok=True)
    helpers = clone / "cuda_python_test_helpers"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), str(helpers)])}
    options = ["-q", "-p", "cuda_tma_plugin", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=60"]
    command = ["-m", "cuda_tma", "sanitize", "--schedules", "1", "--", sys.executable, "-m", "pytest", *options]
    with open(folder / f"{file.stem}.log", "w") as log:
        try:
            subprocess.run(
                [sys.executable, *command, f"--junitxml={document}", str(file)],
                cwd=file.parent,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Counts(Counter(failed=1), Counter({f"failed: {file.name} does not end": 1}))
    if not document.exists():
        return Counts(Counter(failed=1), Counter({f"failed: {file.name} ends the process": 1}))
    return counts_of(document)


def suites(files: Iterable[Path], clone: Path, folder: Path) -> Iterator[tuple[str, Counts]]:
    """Run files of tests. Print and return the counts of each suite."""
    helpers = folder / "helpers"
    shutil.copytree(clone / "cuda_bindings/cuda/bindings/_test_helpers", helpers / "_test_helpers", dirs_exist_ok=True)
    (folder / "cuda_tma_plugin.py").write_text(PLUGIN.format(folder=str(helpers)))
    for file in files:
        counts = run(file, clone, folder)
        name = str(file.relative_to(clone))
        print(name, *(f"{counts.outcomes[each]} {each}" for each in OUTCOMES), sep=", ", flush=True)
        yield name.partition("/")[0], counts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("files", nargs="*", type=Path, help="files of tests in the clone (default: all)")
    parser.add_argument("--write", action="store_true", help="record the counts")
    parser.add_argument("--logs", type=Path, help="folder for the output of each file")
    given = parser.parse_args(arguments)
    totals: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.logs or Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        clone = given.clone.resolve()
        files = [path.resolve() for path in given.files] or test_files(clone)
        for suite, counts in suites(files, clone, folder.resolve()):
            totals.setdefault(suite, Counts()).add(counts)
    for suite, counts in totals.items():
        print(f"\n{suite}:", ", ".join(f"{counts.outcomes[each]} {each}" for each in OUTCOMES))
        for reason, count in counts.reasons.most_common():
            print(f"{count:6} {reason}")
    if given.files:
        return 0  # The recorded counts are for all test files, so a run of some files is not compared.
    return compare({suite: counts.outcomes for suite, counts in totals.items()}, write=given.write)


def compare(outcomes: dict[str, Counter[str]], *, write: bool) -> int:
    """Compare counts with the recorded counts, or record the counts. Return the number of suites in which fewer tests
    pass.
    """
    recorded = json.loads(RECORDED.read_text())
    if write:
        recorded["counts"] = {suite: {each: counts[each] for each in OUTCOMES} for suite, counts in outcomes.items()}
        RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")
        return 0
    floors = recorded["counts"]
    return sum(counts["passed"] < floors[suite]["passed"] for suite, counts in outcomes.items() if suite in floors)


if __name__ == "__main__":
    sys.exit(main())
