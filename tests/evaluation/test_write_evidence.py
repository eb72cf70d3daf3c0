"""Tests of the page of evidence, which contains the present data, and classifies each error of a published program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "evaluation"
CLASSES = {"true", "harmless", "ours"}


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import write_evidence

    yield write_evidence
    for name in ("write_evidence", "run_published_programs"):
        sys.modules.pop(name, None)


def test_the_page_has_the_present_data(module):
    assert module.page() == module.PAGE.read_text("utf-8"), "run python evaluation/write_evidence.py"


def test_each_error_has_a_class_and_a_reason():
    for program in json.loads((FOLDER / "published_programs.json").read_text("utf-8"))["programs"]:
        assert set(program.get("errors", {}).values()) <= CLASSES, program
        assert "reason" in program or not program.get("errors"), program


def test_most_wrong_kernels_of_consan_are_found(module):
    tests = json.loads((FOLDER / "consan" / "results.json").read_text("utf-8"))["tests"]
    wrong = [each for each in tests if each["is_wrong"] and each["source"] != "none"]
    assert sum(each["outcome"] == "passed" for each in wrong) >= 0.9 * len(wrong) > 100


def test_a_reproduction_is_short(module):
    for path in module.FOUND.glob("*/reproduction.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 40, path
        assert (path.parent / "README.md").exists(), path
