"""Tests of each folder's budget for unidiomatic sentences, which may only fall."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from .prose import BUDGET, PATTERNS, Piece, folder_of, hits, hits_in

SENTENCES = json.loads((BUDGET.parent / "prose_sentences.json").read_text())


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


@pytest.mark.parametrize(("sentence", "kind"), SENTENCES["bad"])
def test_each_bad_sentence_has_its_hit(sentence: str, kind: str) -> None:
    assert {hit.kind for hit in hits_in(Piece(sentence))} == {kind}


@pytest.mark.parametrize("sentence", SENTENCES["bad docstrings"])
def test_a_docstring_may_not_open_with_a_clause_or_fragment(sentence: str) -> None:
    assert "an opening clause of a docstring" in {hit.kind for hit in hits_in(Piece(sentence, is_docstring=True))}


@pytest.mark.parametrize("sentence", SENTENCES["good"])
def test_good_sentences_have_no_hits(sentence: str) -> None:
    assert hits_in(Piece(sentence, is_docstring=True)) == []


def test_there_are_thirty_sentences_of_each_kind_and_each_pattern_has_one() -> None:
    assert len(SENTENCES["bad"]) >= 30 and len(SENTENCES["good"]) >= 30
    assert {kind for _, kind in SENTENCES["bad"]} == PATTERNS["text"].keys()
