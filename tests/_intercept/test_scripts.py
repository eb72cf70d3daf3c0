"""Tests of the adapters of runtimes. A right script has no error, and a wrong script has an error at its marked
line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.adapted import Ran, ran

SCRIPTS = Path(__file__).parents[1] / "scripts"
RUNTIMES = [folder.name for folder in sorted(SCRIPTS.iterdir())]
# The table contains the modules that each runtime needs. A runtime that is not in the table needs torch and its own
# module.
NEEDS = {"ours": ["numpy"]}
MARK = re.compile("(#|//) wrong")


def names(pattern: str) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in sorted(SCRIPTS.glob(f"*/{pattern}"))]


def ran_copy(name: str, folder: Path) -> tuple[Path, Ran]:
    runtime = name.partition("/")[0]
    for module in NEEDS.get(runtime, ["torch", runtime]):
        pytest.importorskip(module)
    script = folder / Path(name).name
    shutil.copy(SCRIPTS / name, script)
    return script, ran(script)


@pytest.mark.parametrize("name", names("right*.py"))
def test_right(name, tmp_path):
    _, done = ran_copy(name, tmp_path)
    assert done.status == 0, done.errors
    errors = [found for launch in done.launches for found in launch["findings"] if found["severity"] == "error"]
    assert errors == []
    assert done.launches
    assert not any(launch["skipped"] for launch in done.launches)


@pytest.mark.parametrize("name", names("wrong*.py"))
def test_wrong(name, tmp_path):
    script, done = ran_copy(name, tmp_path)
    lines = [number for number, line in enumerate(script.read_text().splitlines(), 1) if MARK.search(line)]
    errors = [found for launch in done.launches for found in launch["findings"] if found["severity"] == "error"]
    assert errors, done.errors
    places = {(Path(file).name, line) for found in errors for file, line in found["places"]}
    if lines:
        assert {(script.name, line) for line in lines} & places, errors
    else:
        # A script without a marked line has its error in generated C++.
        assert any(file.endswith(".cu") for file, _ in places), errors
