"""A test that the page on the memory model names every module of the model, and only existing files and classes."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SANITIZER = ROOT / "cuda_tma" / "simulate" / "_sanitize"
PAGE = (ROOT / "docs" / "explanation" / "memory-model.md").read_text()
NAMED = set(re.findall(r"`((?:\.\./_warps/|model/|checks/|report/)?\w+\.pyx?)`", PAGE))


def test_the_page_names_existing_files():
    assert len(NAMED) > 25
    assert [name for name in NAMED if not (SANITIZER / name).is_file()] == []


def test_the_page_names_every_module_of_the_model_and_the_checks():
    modules = {f"{folder}/{path.name}" for folder in ("model", "checks") for path in (SANITIZER / folder).glob("*.py")}
    assert {name for name in modules - NAMED if not name.endswith("__init__.py")} == set()


def test_each_class_is_in_the_file_that_its_row_names():
    rows = re.findall(r"^\| [^|]+\| `(\w+)` \| `([\w/.]+)` \|$", PAGE, re.MULTILINE)
    rows += re.findall(r"`(\w+)` in `([\w/]+\.py)`", PAGE)
    assert len(rows) > 12
    assert [row for row in rows if f"\nclass {row[0]}" not in (SANITIZER / row[1]).read_text()] == []
