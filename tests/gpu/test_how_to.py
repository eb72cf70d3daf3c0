"""A test that runs the pages of the site with blocks for a GPU: all blocks in order, each page in its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [page for page in sorted((ROOT / "docs").glob("*/*.md")) if "```python gpu" in page.read_text()]
LIBRARIES = ("cupy", "ml_dtypes", "torch", "triton")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_match_the_page(page):
    for library in LIBRARIES:
        if re.search(rf"^import {library}$", page.read_text(), re.MULTILINE) and not find_spec(library):
            pytest.skip(f"needs {library}")
    command = [sys.executable, str(ROOT / "tools" / "run_pages.py"), "--gpu", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
