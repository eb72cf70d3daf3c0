"""Tests of source lines in findings, with the mark below their column."""

import pytest

from cuda_tma._command import excerpts
from cuda_tma._command.sources import Sources
from cuda_tma.simulate import Finding, Place

LONG = "a" * 300 + "X" + "b" * 300


@pytest.mark.parametrize(
    ("line", "column", "shown", "mark"),
    [
        ("int x = y;", 9, "int x = y;", 8),
        ("\tint x;", 2, "    int x;", 4),
        ("y" * 160, 160, "y" * 160, 159),
        (LONG, 301, "..." + "a" * 80 + "X" + "b" * 79 + "...", 83),
        (LONG, 1, "a" * 160 + "...", 0),
        (LONG, 601, "..." + "b" * 81, 83),
    ],
)
def test_a_long_line_is_cut_around_its_mark(tmp_path, line, column, shown, mark):
    (tmp_path / "k.cu").write_text(line + "\n")
    finding = Finding("race", "error", "m", (Place(str(tmp_path / "k.cu"), 1, column),))
    text = "".join(piece for piece, _ in excerpts.described(finding, Sources(tmp_path / "k.cu"))).splitlines()
    at = next(i for i, each in enumerate(text) if each.startswith("    1 | "))
    assert text[at] == f"    1 | {shown}"
    assert text[at + 1] == f"      | {' ' * mark}^"
