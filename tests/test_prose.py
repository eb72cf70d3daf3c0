"""The fence around the prose: a folder has a budget of unidiomatic sentences, and it only falls."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from .prose import BUDGET, folder_of, hits, hits_in


def test_no_folder_exceeds_its_budget() -> None:
    budget = json.loads(BUDGET.read_text())
    found = hits()
    counts = Counter(folder_of(hit.path) for hit in found)
    above = {folder for folder, count in counts.items() if count > budget.get(folder, 0)}
    assert not above, "rewrite as many of these as are new:\n" + "\n".join(
        f"{hit.path}: {hit.kind}: ... {hit.excerpt} ..." for hit in found if folder_of(hit.path) in above
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="tokenize splits f-strings, which changes some counts")
def test_a_budget_is_no_larger_than_its_use() -> None:
    budget = json.loads(BUDGET.read_text())
    counts = Counter(folder_of(hit.path) for hit in hits())
    slack = {folder: f"{budget[folder]} -> {counts[folder]}" for folder in budget if budget[folder] > counts[folder]}
    assert not slack, f"lower these budgets with `python -m tests.prose`: {slack}"


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The copy is described by what the map contains.", "a free relative after a preposition"),
        ("What a map describes is 128 bytes.", "a free relative as subject"),
        ("The barrier completes, and nobody waits.", "a thread as a person"),
        ("The barrier is told of the bytes.", "an inanimate speaker"),
        ("A fence mends this.", "a word to avoid"),
        ("The barrier is not initialised.", "British spelling"),
    ],
)
def test_each_pattern_finds_its_sentence(sentence: str, kind: str) -> None:
    assert [hit.kind for hit in hits_in(sentence)] == [kind]


@pytest.mark.parametrize(
    "sentence",
    [
        "A tensor map describes the copy in 128 bytes.",
        "Which swizzle fits? What follows from this?",
        "The recommended amendment initializes the barrier.",
        "The waiting thread polls the phase of the barrier; no thread writes.",
    ],
)
def test_plain_sentences_have_no_hits(sentence: str) -> None:
    assert hits_in(sentence) == []
