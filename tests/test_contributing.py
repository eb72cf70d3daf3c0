"""Tests that CONTRIBUTING.md, the map of the repository, matches the repository."""

import re
from pathlib import Path

import pytest

from tests.test_structure import CONTRACT, DOORS, MODULES, PACKAGE, ROOMS, ROOT, room

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", PAGE)
FILE = re.compile(r"[\w./]*\w\.(?:py|pyx|pxd|cuh|md|sh|toml)|[\w.]+/[\w./]*|\.ci/run|Makefile")
STATE = re.compile(r"^\s+global |^cdef (?:WeakCache|dict) |lru_cache\(", re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table in a section of CONTRIBUTING.md."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in cells] for cells in lines[2:]]


def test_the_rooms_are_those_of_the_code():
    assert [name.strip("`") for name, _ in rows("The rooms")] == list(ROOMS)


@pytest.mark.parametrize("name", [CONTRACT, DOORS])
def test_a_room_without_a_folder_names_its_modules(name):
    (text,) = [text for found, text in rows("The rooms") if found == name]
    named = {Path(quoted).stem for quoted in re.findall(r"`([^`]+)`", text) if FILE.fullmatch(quoted)}
    assert named == {module or "__init__" for module in MODULES if room(module) == name}


def test_every_file_that_is_named_is_there():
    named = [quoted for quoted in QUOTED if FILE.fullmatch(quoted)]
    assert len(named) > 50
    assert [name for name in named if not ((ROOT / name).exists() or (PACKAGE / name).exists())] == []


def test_every_target_that_is_named_is_in_the_makefile():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {quoted.split()[1] for quoted in QUOTED if quoted.startswith("make ")}
    assert {"build-in-place", "test", "check", "bench"} <= named <= set(targets)


def test_every_module_with_state_is_named():
    text = PAGE.split("## Free threading")[1]
    named = set(re.findall(r"`([\w/]+\.pyx?)`", text))
    found = {
        str(path.relative_to(PACKAGE)) for paths in MODULES.values() for path in paths if STATE.search(path.read_text())
    }
    assert found <= named
