"""The record of a run of tests/gpu, RESULTS.md.

CI has no GPU, so this file is the evidence, and names the tested commit.

Examples
--------
python -m tests.gpu.results             list the files that have changed since the commit in RESULTS.md
python -m tests.gpu.results commit      print the current commit, with "-dirty" if there are uncommitted changes
python -m tests.gpu.results write PART ...  write it from runs of parts of the tests, at the same time or one after the
                                        other, each with CUDA_TMA_RESULTS=part.json
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
RESULTS = FOLDER / "RESULTS.md"
# The tuple contains the paths of the tested code and of the tests, which are arguments of git. The tests on a GPU also
# run the examples and the kernels of two tests.
MEASURED = ("cuda_tma", "examples", "tests/gpu", "tests/include/test_kernels.py", "tests/support/exact_examples.py")
MEASURED += (":!tests/gpu/RESULTS.md",)
KINDS = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
CHANGED = "## Changed since"


def git(*arguments: str) -> str | None:
    """Return the output of git for this repository, or None if git fails or does not exist."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str:
    """Return the tested commit for RESULTS.md. Without git, the variable CUDA_TMA_COMMIT contains it."""
    if given := os.environ.get("CUDA_TMA_COMMIT"):
        return given
    head = git("rev-parse", "--short", "HEAD")
    if head is None:
        return "unknown"
    return f"{head}-dirty" if git("status", "--porcelain", "--", *MEASURED) else head


class Launch(NamedTuple):
    """A launch that the simulator also ran, with the fields by which the record counts launches."""

    kernel: str
    ptx: str | None
    skipped: str


@dataclasses.dataclass(frozen=True)
class Part:
    """The record of one run of some GPU tests."""

    # The field contains the place, the time and the commit of the run.
    facts: Sequence[str]
    # The field contains the files whose tests all ended.
    files: Sequence[str]
    counts: Mapping[str, int]
    published: Sequence[str] = ()
    launches: Sequence[Launch] = ()
    failed: Sequence[str] = ()

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Part:
        values = json.loads(text)
        return cls(**values | {"launches": [Launch(*launch) for launch in values["launches"]]})


def together(parts: Sequence[Part]) -> Part:
    """Merge partial records into one record. Raise a ValueError if the parts differ in commit or machine, or share
    tests."""
    facts = {tuple(fact for fact in part.facts if not fact.startswith("date: ")) for part in parts}
    files = [name for part in parts for name in part.files]
    if len(facts) > 1:
        raise ValueError(f"the parts are not of one commit and machine: {sorted(facts)}")
    if twice := [name for name, count in Counter(files).items() if count > 1]:
        raise ValueError(f"several parts have the tests of {', '.join(sorted(twice))}")
    return Part(
        parts[0].facts,
        files,
        sum((Counter(part.counts) for part in parts), Counter()),
        [line for part in parts for line in part.published],
        [launch for part in parts for launch in part.launches],
        [name for part in parts for name in part.failed],
    )


def missing(part: Part) -> list[str]:
    """Return the files of GPU tests that did not run. A run of some tests is not evidence for other tests."""
    return sorted({path.name for path in FOLDER.glob("test_*.py")} - set(part.files))


def ended_files(
    files: Collection[str], collected: int, reported: int, deselected: int, arguments: Iterable[str]
) -> list[str]:
    """Return the files whose tests all ran, or an empty result if these files are not known.

    Parameters
    ----------
    files : collection of str
        Names of the files whose tests were collected.
    collected, reported, deselected : int
        The numbers of collected tests, of tests with an outcome, and of tests that options such as -k and -m
        deselected.
    arguments : iterable of str
        The arguments of pytest.
    """
    all_ended = collected == reported and not deselected and not any("::" in each for each in arguments)
    return sorted(files) if all_ended else []


def watched(launches: Sequence[Launch]) -> list[str]:
    """Return the number of launches that the simulator also ran. For each kernel without simulated launches, return the
    reason."""
    ran = [launch for launch in launches if not launch.skipped]
    kernels, names = {(launch.kernel, launch.ptx) for launch in ran}, {launch.kernel for launch in ran}
    same = f"{len(ran)} launches of {len(kernels)} kernels of tests/gpu left the same bytes on the GPU"
    lines = [f"{same} and on the simulator, started from the same memory"]
    reasons: dict[str, set[str]] = {}
    for launch in launches:
        if launch.skipped and launch.kernel not in names:
            reasons.setdefault(launch.skipped, set()).add(launch.kernel)
    return lines + [
        f"not on the simulator: {', '.join(sorted(of))}: {reason}" for reason, of in sorted(reasons.items())
    ]


def report(part: Part) -> str:
    """Return the text of RESULTS.md: commit and time, the outcomes, the published lines, and the failures."""
    counted = ", ".join(f"{kind}: {part.counts.get(kind, 0)}" for kind in KINDS)
    said = [*part.published, *(watched(part.launches) if part.launches else ())]
    lines = [*part.facts, counted, *said, *(f"FAILED {name}" for name in part.failed)]
    heading = ["# GPU test results", "", "Written by `tests/gpu` itself. CI has no GPU: this file is the evidence.", ""]
    return "\n".join([*heading, *(f"- {line}" for line in lines)]) + "\n"


def named_commit(text: str) -> str:
    """Return the commit in RESULTS.md."""
    (name,) = re.findall(r"^- commit: (\S+)$", text, re.MULTILINE)
    return name


def named_changes(text: str) -> list[str]:
    """Return the list of changed files in RESULTS.md."""
    _, _, section = text.partition(CHANGED)
    return re.findall(r"^- (\S+)$", section, re.MULTILINE)


def with_changes(text: str, paths: Sequence[str]) -> str:
    """Return the text of RESULTS.md with these files as its list of changed files."""
    measured = text.partition(CHANGED)[0].rstrip() + "\n"
    if not paths:
        return measured
    listed = "".join(f"- {path}\n" for path in paths)
    return f"{measured}\n{CHANGED}\n\nNot run on a GPU as they are now:\n\n{listed}"


def changed_since(name: str) -> list[str] | None:
    """Return the measured files that differ from a commit, or None if git does not have the commit."""
    said = git("diff", "--name-only", "--no-renames", name, "--", *MEASURED)
    return None if said is None else said.splitlines()


def main() -> None:
    if sys.argv[1:] == ["commit"]:
        print(commit())
        return
    if sys.argv[1:2] == ["write"]:
        whole = together([Part.from_json(Path(name).read_text()) for name in sys.argv[2:]])
        if lacking := missing(whole):
            raise SystemExit(f"{RESULTS.name} stays as it is: without {', '.join(lacking)}")
        RESULTS.write_text(report(whole))
        return
    text = RESULTS.read_text()
    changed = changed_since(named_commit(text))
    if changed is None:
        raise SystemExit(f"git has no commit {named_commit(text)}")
    RESULTS.write_text(with_changes(text, changed))


if __name__ == "__main__":
    main()
