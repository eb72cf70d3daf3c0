"""Tests of the rows and columns that outputs of the command show, and of the sentences about the others."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from cuda_tma._command import baseline, console, dump, excerpts, gpu_table, launch, page, page_excerpts
from cuda_tma._errors import TensorMapError

NOWHERE = SimpleNamespace(blocks=(), threads=(), count=1)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, ""),
        ({"blocks": [(0, 0, 0)]}, "block (0, 0, 0)"),
        ({"blocks": [(0, 0, 0), (1, 0, 0)], "threads": [7]}, "block (0, 0, 0) and 1 more, thread 7"),
        ({"threads": [7, 8, 9], "count": 2}, "thread 7 and 2 more, 2 times"),
    ],
)
def test_the_threads_of_a_finding(values, text):
    finding = SimpleNamespace(**vars(NOWHERE) | values)
    assert excerpts._where(finding) == page._threads(finding) == text


def test_a_line_is_cut_around_a_column(monkeypatch):
    monkeypatch.setattr(excerpts, "_MOST_COLUMNS", 6)
    assert excerpts._cut("abcdef", 5) == ("abcdef", 5)
    assert excerpts._cut("abcdefg", 0) == ("abcdef...", 0)
    assert excerpts._cut("abcdefgh", 2) == ("abcdef...", 2)
    assert excerpts._cut("abcdefgh", 4) == ("...bcdefg...", 6)
    assert excerpts._cut("abcdefgh", 5) == ("...cdefgh", 6)
    assert excerpts._cut("abcdefgh", 7) == ("...efgh", 6)
    assert [excerpts.column_of("aüb", column) for column in (0, 1, 2, 4, 9)] == [1, 1, 2, 3, 4]


def test_the_rows_around_a_mark():
    marks = [SimpleNamespace(line=1, words=""), SimpleNamespace(line=12, words="first")]
    shown = "".join(page_excerpts._rows(marks, [f"line {number}" for number in range(1, 13)]))
    near = page_excerpts._CONTEXT
    numbers = [*range(1, 2 + near), *range(12 - near, 13)]
    assert [number for number in range(0, 15) if f"<i>{number}</i>line {number}<" in shown] == numbers
    assert shown.count("<i>...</i>") == 1 and "first" in shown
    assert '<span class="hit"><i>1</i>' in shown and '<span class="other"><i>12</i>' in shown


def test_the_findings_of_a_page(monkeypatch):
    monkeypatch.setattr(page, "_MOST_CAUSES", 2)
    monkeypatch.setattr(page, "_article", lambda number, cause, drawn, sources: iter([f"{number}{cause.name}{drawn};"]))
    causes = [SimpleNamespace(name=name, launch=None) for name in "abcd"]

    def shown(count):
        return "".join(page._causes(causes[:count], {1: "T"}, lambda launch: None))

    assert [shown(count) for count in (0, 1, 2)] == ["", "<h2>Findings</h2>0a;", "<h2>Findings</h2>0a;1bT;"]
    assert shown(4) == "<h2>Findings</h2>0a;1bT;<p>2 more findings are in the JSON document.</p>"


@pytest.mark.parametrize(("count", "more"), [(2, ""), (3, "<p>1 more rows are in the JSON document.</p>")])
def test_the_launches_of_a_page(monkeypatch, count, more):
    monkeypatch.setattr(page, "_MOST_ROWS", 2)
    monkeypatch.setattr(page, "_result", lambda launch: "clean")
    launches = [
        SimpleNamespace(kernel=f"k{number // 2}", runtime="r", config=None, launched_at=None, seconds=0.5)
        for number in range(2 * count)
    ]
    shown = "".join(page._launches(SimpleNamespace(launches=launches)))
    assert shown.count("<tr>") == 3 and shown.endswith(f"</tbody></table>{more}")
    assert [f"k{number}" in shown for number in range(3)] == [True, True, False] and shown.count("1.00") == 2
    assert "".join(page._launches(SimpleNamespace(launches=[]))) == ""


@pytest.mark.parametrize(("count", "more"), [(2, []), (3, ["  1 launch of 1 kernel more"])])
def test_the_kernels_of_a_gpu(monkeypatch, count, more):
    monkeypatch.setattr(gpu_table, "_MOST_ROWS", 2)
    monkeypatch.setattr(gpu_table, "_described", lambda counts: f"{counts.launches}")
    monkeypatch.setattr(gpu_table, "_summary", lambda outcome: iter(()))
    kernels = [SimpleNamespace(name=f"k{i}", reason="", counts=SimpleNamespace(launches=i + 1)) for i in range(count)]
    kernels += [SimpleNamespace(name="x", reason="no PTX\nmore", counts=SimpleNamespace(launches=9))]
    lines = [*gpu_table.gpu_lines(SimpleNamespace(tables=[SimpleNamespace(gpu="GPU", kernels=kernels)]))]
    names = [f"  k{i}: {i + 1}" for i in range(count)][::-1][:2]
    total = sum(range(1, count + 1)) + 9
    assert lines == [f"on GPU: {total} launches of {count + 1} kernels", *names, *more,
                     "  9 launches of 1 kernel not judged: no PTX"]  # fmt: skip


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (1, "ab"), (2, "c"), (3, "3"), (-1, "-1")])
def test_the_text_of_a_statement_in_a_baseline(number, text):
    sources = SimpleNamespace(file="k.ptx", generated=(), lines=lambda file: ("a b\t", "c"))
    assert baseline._written((), number, sources) == f"k.ptx:{text}"


def test_a_number_of_an_argument():
    most = launch._MOST_DIGITS
    assert launch.argument("1" * most) == int("1" * most) and launch.argument("-0x10") == -16
    with pytest.raises(argparse.ArgumentTypeError, match=f"has {most + 1} characters; pass a number of at most 64"):
        launch.argument("1" * (most + 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0x" + "0" * 17 + " " + "0x0 " * 15,
            "the longest of 16 groups with 0x has 17 digits, so they are not 128 bytes",
        ),
        ("0x12345678 " * 16, "the longest of 16 groups with 0x has 8 digits"),
        ("0x123456789 " * 15, "the longest of 15 groups with 0x has 9 digits"),
        ("", "it is not a sequence of hex digits"),
        ("zz 00", "it is not a sequence of hex digits"),
        ("0x00 00", "some of its groups begin with 0x, and some do not"),
        ("00 " * 127, "it has 254 hex digits, but 128 bytes have 256"),
    ],
)
def test_a_dump_that_is_ambiguous(text, message):
    with pytest.raises(TensorMapError, match=message):
        dump.parse_dump(text)


def test_the_shortest_and_the_longest_words_of_a_dump():
    assert dump.parse_dump("0x123456789 " + "0x0 " * 15)[:6] == bytes.fromhex("896745230100")
    assert dump.parse_dump("0x" + "f" * 16 + " 0x1" * 15)[:9] == b"\xff" * 8 + b"\1"


@pytest.mark.parametrize(("width", "is_drawn"), [(12, True), (11, False)])
def test_a_table_that_just_fits_the_terminal(monkeypatch, width, is_drawn):
    rich = pytest.importorskip("rich.console")
    printed = []
    monkeypatch.setattr(rich, "Console", lambda: SimpleNamespace(width=width, print=printed.append))
    assert console._print_by_rich("", ["a", "b"], [["12", "345"]], prose=False) is is_drawn and len(printed) == is_drawn
