"""Run every block of the tutorial, in order, on a machine without a GPU, and compare the output with the pages.

The option ``--all`` includes the how-to and explanation pages, ``--gpu`` also runs the blocks that need a GPU, and
``--write`` writes the output and the drawn pictures into the pages.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from pages import DOCS, PAGES, blocks_of, compare, run, with_outputs


def main() -> int:
    """Return the exit status, which is 1 if a page differs from the output of its blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="pages; without, the whole tutorial")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    chosen = given.pages or [page for page in PAGES if given.all or page.parent.name == "tutorial"]
    wrong = [line for page in chosen for line in _run(page.resolve(), given.write, given.gpu)]
    print("\n".join(wrong) if wrong else f"{len(chosen)} pages show what their blocks print")
    return 1 if wrong and not given.write else 0


def _run(page: Path, write: bool, gpu: bool) -> list[str]:
    text, begin = page.read_text(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        ran = list(run(text, Path(folder), str(page), gpu=gpu))
        if write:
            page.write_text(with_outputs(text, ran))
            for picture in [*Path(folder).glob("*.svg"), *Path(folder).glob("*.png")]:
                (page.parent / "images").mkdir(exist_ok=True)
                shutil.copy(picture, page.parent / "images")
    name, seconds = page.relative_to(DOCS), time.perf_counter() - begin
    print(f"{name}: {len(blocks_of(text))} blocks, {len(ran)} run, {seconds:.1f} s", file=sys.stderr)
    return [f"{name}: {words}" for each in ran if (words := compare(each))]


if __name__ == "__main__":
    sys.exit(main())
