"""Tests of other runtimes on the driver library: right scripts have no error, wrong scripts have one at the marked
line.

The tests skip a runtime that is not installed; ``make test-environments`` installs each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests._intercept._programs import Ran, run_below

SCRIPTS = Path(__file__).with_name("scripts")
MODULES = {"numba": "numba_cuda", "cupy": "cupy", "cute": "cutlass"}  # the modules that the scripts of each folder need


def names(pattern: str) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in sorted(SCRIPTS.glob(f"*/{pattern}"))]


def judged(name: str, folder: Path) -> Ran:
    """Run a script below the command."""
    pytest.importorskip(MODULES[name.partition("/")[0]])
    return run_below(folder, "python", str(SCRIPTS / name), schedules=4)


@pytest.mark.parametrize("name", names("right*.py"))
def test_right(name, tmp_path):
    ran = judged(name, tmp_path)
    assert ran.status == 0, ran.err
    assert ran.launches and not ran.skipped and not ran.leaks
    assert not [found for found in ran.findings if found["severity"] == "error"]


@pytest.mark.parametrize("name", names("wrong*.py"))
def test_wrong(name, tmp_path):
    ran = judged(name, tmp_path)
    assert ran.status == 1, ran.err
    lines = (SCRIPTS / name).read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# wrong" in line or "// wrong" in line}
    errors_found = [each for each in ran.findings if each["severity"] == "error"]
    places = [place["source"] for each in errors_found for place in (each, *each["related"]) if place["source"]]
    found = {(Path(place["file"]).name, place["line"]) for place in places}
    assert {(Path(name).name, line) for line in marked} & found, found
