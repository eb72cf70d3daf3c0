"""The generated pages of docs/ are those that the tables give."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

import write_rules  # noqa: E402


@pytest.mark.parametrize("name", write_rules.PAGES)
def test_the_page_is_current(name):
    assert (ROOT / "docs" / name).read_text() == write_rules.PAGES[name](), "run: python tools/write_rules.py"
