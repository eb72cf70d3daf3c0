"""Runs of the tests with a mutant, in a copy of the repository for each worker, and the choice of these tests.

A first run of the test files without a fault records the tests that fail, the seconds, and the executed lines of each
test. The tests of a mutant are those that execute its line, from the test file with its module's name, from the other
files of the module's folder, and from further files. The fastest test runs first, up to a time of `seconds`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from evaluation.mutation.operators import Mutant

__all__ = ["Folder", "Trial", "baseline_of", "test_files", "tests_of", "tried"]

BESIDE = {"benchmarks", "corpus", "data", "docs", "evaluation", "gpu", "scripts", "support", "tools"}
ABOUT_FILES = {"structure", "prose", "types", "gpu_results", "contributing", "environments", "release", "public_names",
               "readme", "signatures", "leaks", "fake_driver"}  # fmt: skip
LEFT_OUT = shutil.ignore_patterns(".git", "build", "dist", ".venv", ".hypothesis", ".*_cache", "*.egg-info", "docs")
FILE_SECONDS = 120.0  # Without a fault, a test file may take at most two minutes.
START_SECONDS = 15.0  # The start of pytest takes at most 15 seconds on a busy machine.
NO_SUCH_TEST = 4  # The status of pytest if no test has a name of the command line.


@dataclass(frozen=True)
class Folder:
    """A copy of the repository in which one process at a time runs tests."""

    path: Path

    @classmethod
    def copied(cls, root: Path, path: Path, extensions: Path | None) -> Folder:
        """Copy the repository, with the compiled extensions of a folder that contains `cuda_tma`."""
        shutil.copytree(root, path, ignore=LEFT_OUT, symlinks=True)
        for file in (extensions / "cuda_tma").rglob("*.so*") if extensions else ():
            shutil.copy2(file, path / "cuda_tma" / file.relative_to(extensions / "cuda_tma"))
        (path / "home").mkdir(exist_ok=True)
        return cls(path)

    def pytest(self, arguments: Iterable[str], seconds: float, **variables: str) -> tuple[int | None, str]:
        """Run pytest. Return the status of the process (None after `seconds`) and the end of its output."""
        home = str(self.path / "home")
        paths = os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        own = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "HOME": home,
               "XDG_CACHE_HOME": home, "TMPDIR": home, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", "--tb=no", *arguments]
        log = self.path / "home" / "log"
        with log.open("wb") as out:
            child = subprocess.Popen(command, cwd=self.path, env={**os.environ, **own, **variables}, stdout=out,
                                     stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            try:
                status: int | None = child.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(child)
        return status, log.read_text(errors="replace")[-3000:]


def _end(child: subprocess.Popen) -> None:
    """End a process and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def test_files(root: Path, glob: str) -> list[str]:
    """Return the test files whose results depend on the package's behavior, as paths from the repository's root."""
    files = [file.relative_to(root) for file in sorted((root / "tests").rglob("test_*.py"))]
    return [str(file) for file in files
            if file.parts[1] not in BESIDE and "scripts" not in file.parts
            and file.stem.removeprefix("test_") not in ABOUT_FILES and fnmatch(str(file), glob)]  # fmt: skip


def baseline_of(folder: Folder, files: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Run test files without a fault; return the tests of each file, with their seconds and executed lines."""
    lines = folder.path / "home" / "lines.json"
    lines.unlink(missing_ok=True)
    plugin = ["-p", "evaluation.mutation.executed_lines"]
    folder.pytest([*plugin, *files], FILE_SECONDS * len(files), MUTATION_LINES=str(lines))
    found = json.loads(lines.read_text()) if lines.exists() else {}
    return {file: found.get(file, {"failed": [], "tests": {}}) for file in files}


def tests_of(mutant: Mutant, known: dict[str, Any], seconds: float) -> list[str]:
    """Return the tests for a mutant that take `seconds` at most, with the tests of its own module first.

    If no test executes the line of the mutant, for example because it is executed when the module is imported, the
    tests that execute any line of the module follow. If only child processes execute the line, the tests of the room
    follow.
    """
    *folders, name = mutant.path.removesuffix(".py").split("/")[1:]
    folder, room = "/".join(["tests", *folders]), "/".join(["tests", *folders[:1]])
    own = f"{folder}/test_{name.lstrip('_')}"
    changed = ((2 << mutant.stop) - 1) >> mutant.line << mutant.line
    ranked: list[tuple[int, int, float, str]] = []
    for file, values in known.items():
        place = 0 if file == f"{own}.py" else 1 if file.startswith(own) else 2 if _folder(file) == folder else 3
        for test, (took, masks) in values["tests"].items():
            mask = int(masks.get(mutant.path, "0"), 16)
            kind = 0 if mask & changed else 1 if place < 2 else 2 if mask else 3
            if test not in values["failed"] and (kind < 3 or file.startswith(f"{room}/")):
                ranked.append((kind, place, took, test))
    ranked.sort()
    if ranked and not ranked[0][0]:
        ranked = [each for each in ranked if each[0] < 2]
    chosen, total = [], 0.0
    for *_, took, test in ranked:
        if total + took <= seconds or not chosen:
            chosen.append(test)
            total += took
    return chosen


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


@dataclass(frozen=True)
class Trial:
    """The result of a mutant, whose `outcome` is killed, survived, untested or "not run"."""

    mutant: Mutant
    outcome: str
    by: str
    tests: int
    seconds: float


def tried(folder: Folder, mutant: Mutant, known: dict[str, Any], seconds: float) -> Trial:
    """Run the tests of a mutant until the first failure."""
    tests = tests_of(mutant, known, seconds)
    if not tests:
        return Trial(mutant, "untested", "", 0, 0.0)
    path, began = folder.path / mutant.path, time.monotonic()
    source, times = path.read_bytes(), path.stat()
    try:
        path.write_bytes(mutant.applied(source))
        status, output = _run(folder, tests, known)
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    took = time.monotonic() - began
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    outcome = {0: "survived", 5: "untested"}.get(status if status is not None else -1, "killed")
    slow = status is None or status == -signal.SIGPROF
    by = "" if outcome != "killed" else "time" if slow else failed[1] if failed else f"status {status}"
    return Trial(mutant, outcome, by, len(tests), took)


def _run(folder: Folder, tests: list[str], known: dict[str, Any]) -> tuple[int | None, str]:
    """Run tests until the first failure; run whole files if the mutant changes the names of tests."""
    times = {test: took for values in known.values() for test, (took, _) in values["tests"].items()}
    most, limit = max(times[test] for test in tests), START_SECONDS + 3 * sum(times[test] for test in tests)
    options = ["-x", "-rfE", "-p", "evaluation.mutation.executed_lines"]
    own = {"MUTATION_SECONDS": f"{START_SECONDS + 5 * most:.0f}", "MUTATION_LINES": ""}
    status, output = folder.pytest([*options, *tests], limit, **own)
    if status != NO_SUCH_TEST:
        return status, output
    files = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
    skipped = [f"--deselect={test}" for file in files for test in known[file]["failed"]]
    return folder.pytest([*options, *skipped, *files], FILE_SECONDS, **own)
