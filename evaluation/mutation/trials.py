"""Runs of the tests with a mutant, in a copy of the repository for each worker, and the choice of these tests.

A first run of each test file without a fault records the tests that fail, the seconds, and the executed lines. The
tests of a mutant are the test file with its module's name, the other files of the module's folder, and further files
that execute its line. The fastest file runs first, up to a time of `seconds`.
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


def baseline_of(folder: Folder, file: str) -> dict[str, Any]:
    """Run a test file without a fault."""
    lines = folder.path / "home" / "lines.json"
    lines.unlink(missing_ok=True)
    plugin = ["-p", "evaluation.mutation.executed_lines"]
    status, output = folder.pytest([*plugin, file], FILE_SECONDS, MUTATION_LINES=str(lines))
    if status is None or not lines.exists():
        return {"status": status, "tests": 0, "seconds": FILE_SECONDS, "failed": [], "lines": {}, "output": output}
    return json.loads(lines.read_text())


def tests_of(mutant: Mutant, known: dict[str, Any], seconds: float) -> list[str]:
    """Return the test files for a mutant, with the files of its own module first.

    If no test executes the line of the mutant, for example because only child processes do, return the files of the
    mutant's folder or room.
    """
    *folders, name = mutant.path.removesuffix(".py").split("/")[1:]
    folder = "/".join(["tests", *folders])
    own = f"{folder}/test_{name.lstrip('_')}"
    lines = range(mutant.line, mutant.stop + 1)

    def rank(file: str) -> tuple[int, float]:
        place = 0 if file == f"{own}.py" else 1 if file.startswith(own) else 2 if _folder(file) == folder else 3
        return place, known[file]["seconds"]

    files = sorted((file for file in known if known[file]["tests"] > len(known[file]["failed"])), key=rank)
    executing = [file for file in files if not {*known[file]["lines"].get(mutant.path, ())}.isdisjoint(lines)]
    near = [file for file in files if rank(file)[0] < 2 and file not in executing]
    if not executing:
        near = [file for file in files if rank(file)[0] < 3 or file.startswith("/".join(["tests", *folders[:1]]))]
    chosen, total = [], 0.0
    for file in sorted([*executing, *near], key=rank):
        if total + known[file]["seconds"] <= seconds or not chosen:
            chosen.append(file)
            total += known[file]["seconds"]
    return chosen


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


@dataclass(frozen=True)
class Trial:
    """The result of a mutant, whose `outcome` is killed, survived, untested or "not run"."""

    mutant: Mutant
    outcome: str
    by: str
    files: tuple[str, ...]
    seconds: float


def tried(folder: Folder, mutant: Mutant, known: dict[str, Any], seconds: float) -> Trial:
    """Run the tests of a mutant until the first failure."""
    files = tests_of(mutant, known, seconds)
    if not files:
        return Trial(mutant, "untested", "", (), 0.0)
    path, began = folder.path / mutant.path, time.monotonic()
    source, times = path.read_bytes(), path.stat()
    skipped = [f"--deselect={test}" for file in files for test in known[file]["failed"]]
    limit = START_SECONDS + 3 * sum(known[file]["seconds"] for file in files)
    try:
        path.write_bytes(mutant.applied(source))
        status, output = folder.pytest(["-x", "-rfE", *skipped, *files], limit)
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    took = time.monotonic() - began
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    outcome = {0: "survived", 5: "untested"}.get(status if status is not None else -1, "killed")
    by = "" if outcome != "killed" else "time" if status is None else failed[1] if failed else f"status {status}"
    return Trial(mutant, outcome, by, tuple(files), took)
