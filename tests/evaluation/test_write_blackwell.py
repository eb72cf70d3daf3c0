"""Tests of the page of kernels for Blackwell, which contains the present data, and of the data, which contain each
kernel of the corpora."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORPORA = {"sm_100": ROOT / "evaluation" / "sm100_corpus", "sm_120": ROOT / "evaluation" / "sm120_corpus"}


@pytest.fixture(scope="module")
def module():
    sys.path[:0] = [str(ROOT / "evaluation")]
    import write_blackwell

    yield write_blackwell
    for name in ("write_blackwell", "write_evidence"):
        sys.modules.pop(name, None)
    del sys.path[0]


def cases_of(script: Path, table: str) -> list[str]:
    """Return the names in a dictionary of a script, which need not be importable."""
    for each in ast.parse(script.read_text("utf-8")).body:
        if isinstance(each, ast.Assign) and each.targets[0].id == table:
            return [key.value for key in each.value.keys]
    raise AssertionError(f"{script.name} has no {table}")


def test_the_page_contains_the_present_data(module):
    assert module.page() == module.PAGE.read_text("utf-8"), "run python evaluation/write_blackwell.py"


def test_the_data_contain_each_kernel_of_the_corpora(module):
    found: dict[tuple[str, str], list[str]] = {}
    for group in module.read()["groups"]:
        found.setdefault((group["target"], group["script"]), []).extend(group["kernels"])
    for (target, name), kernels in found.items():
        if name.endswith("_kernels.py") or name.endswith("_scaled.py"):
            assert kernels == cases_of(CORPORA[target] / name, "CASES")
        elif name.startswith("run_corpus.py"):
            assert sorted(kernels) == sorted(cases_of(CORPORA["sm_100"] / "run_corpus.py", name.split()[1]))
    listed = {(target, path.name) for target, folder in CORPORA.items() for path in folder.glob("*_*.py")}
    listed -= {("sm_100", "run_corpus.py"), ("sm_100", "triton_tutorials.py")}
    assert listed <= found.keys()


def test_all_kernels_of_the_groups_are_right(module):
    data = module.read()
    assert all(outcome == [True, True] for group in data["groups"] for outcome in group["kernels"].values())
    assert {each["class"] for each in data["errors"]} == {"true", "harmless"}
