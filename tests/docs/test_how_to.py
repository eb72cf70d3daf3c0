"""A test that compiles the C++ of the blocks in docs/how-to/ that run only on a GPU."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cuda_tma import simulate

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import pages  # noqa: E402

SOURCE = re.compile(r'^SOURCE = r"""$(.*?)"""', re.DOTALL | re.MULTILINE)
KERNEL = re.compile(r'extern "C" __global__ void (\w+)')


def sources():
    """Return pairs of a page and C++ code, for each block that needs a GPU, and for each file that such a block may
    compile."""
    for page in sorted((ROOT / "docs" / "how-to").glob("*.md")):
        blocks = pages.blocks_of(page.read_text())
        texts = [text for block in blocks if block.word == "gpu" for text in SOURCE.findall(block.text)]
        files = [block.text for block in blocks if block.word.endswith(".cu")]
        yield from ((page.stem, text) for text in [*texts, *files])


@pytest.mark.parametrize("page, source", [*sources()], ids=lambda given: given if "\n" not in given else "")
def test_kernels_of_a_page_compile(page, source):
    gpu = simulate.Device()
    names = KERNEL.findall(source)
    assert names
    for name in names:
        assert gpu.compile(source, name).name == name
