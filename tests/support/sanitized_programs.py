"""Runs of scripts of the fake runtime under ``cuda-tma sanitize``, in this process or in a separate one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copy
from typing import Any, NamedTuple

from tests.support.forked import run_forked

TESTS = Path(__file__).parents[1]
# Each script of the tests begins with these imports.
BEGINNING = "import os, signal, sys, threading, time; from fake_runtime import *\n"


class Sanitized(NamedTuple):
    """The results of a run of the command, which are its exit status, its JSON document and its output."""

    status: int
    answer: dict[str, Any]
    out: str
    err: str

    @property
    def kinds(self) -> list[list[str]]:
        """Return the kinds of the findings of each launch."""
        return [[finding["kind"] for finding in launch["findings"]] for launch in self.answer["launches"]]

    @property
    def skipped(self) -> list[str]:
        """Return the reasons why launches were not checked."""
        return [launch["skipped"] for launch in self.answer["launches"] if launch["skipped"]]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment in which scripts find the fake runtime, as an installed package."""
    packages = folder / "site-packages"
    if not packages.exists():
        packages.mkdir()
        copy(TESTS / "support" / "fake_runtime.py", packages)
    paths = [str(packages), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    # A program that may write only short files must not leave an incomplete file of bytecode, because a later import of
    # the file would fail.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def _prepared(folder: Path, text: str, options: Sequence[str]) -> list[str]:
    """Write a script, and return the arguments of the command, which writes its JSON document to ``out.json``."""
    (folder / "script.py").write_text(BEGINNING + text + "\n", "utf-8")
    return ["sanitize", "--json", "out.json", "--schedules", "2", *options, "--", "python", "script.py"]


def started(folder: Path, text: str, *options: str, **keywords: Any) -> subprocess.Popen[str]:
    """Start the command on a script."""
    command = [sys.executable, "-m", "cuda_tma", *_prepared(folder, text, options)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment(folder), **streams, **keywords)


def sanitize(folder: Path, text: str, *options: str, limits: Mapping[int, int] | None = None) -> Sanitized:
    """Run the command on a script to its end."""
    arguments = _prepared(folder, text, options)
    done = run_forked(*arguments, folder=folder, environment=environment(folder), limits=limits)
    path = folder / "out.json"
    answer = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return Sanitized(done.returncode, answer, done.stdout, done.stderr)
