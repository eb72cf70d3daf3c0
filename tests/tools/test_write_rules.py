"""Tests that the generated pages of docs/ match the tables."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import write_options  # noqa: E402
import write_rules  # noqa: E402

GENERATED = {**write_options.FILES, "docs/options.md": write_options.options_page}


@pytest.mark.parametrize("name", write_rules.PAGES)
def test_the_page_is_current(name):
    assert (ROOT / "docs" / name).read_text() == write_rules.PAGES[name](), "run: python tools/write_rules.py"


@pytest.mark.parametrize("path", GENERATED)
def test_files_generated_from_the_table_of_options_are_current(path):
    assert (ROOT / path).read_text() == GENERATED[path](), "run: python tools/write_options.py"
