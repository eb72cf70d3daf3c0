"""Tests of ``cuda-tma plot --html``, which writes a page on which a reader selects the values."""

import pytest

from cuda_tma._command import cli

PAGE = "--html writes a page on which a reader selects these values; leave out"
MAP = ("--shape", "64x64", "--box", "16x16", "--dtype", "uint8")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--html", "x.html", "--output", "x.png"), f"{PAGE} --output"),
        (("tile", "--html", "x.html"), f"{PAGE} tile"),
        (("--html", "x.html", "--at", "0,0"), f"{PAGE} --at"),
        (("--html", "x.txt"), "--html x.txt is not the name of a page; end the name in .html"),
        (("--html", "none/x.html"), "--html none/x.html cannot be written: No such file or directory"),
    ],
)
def test_a_page_that_cannot_be_written(tmp_path, monkeypatch, capsys, arguments, error):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plot", *arguments]) == 2
    assert capsys.readouterr().err == f"cuda-tma: {error}\n" and [*tmp_path.iterdir()] == []


def test_a_page_begins_with_the_map_of_the_arguments(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, arguments in (("any", ()), ("same", ()), ("map", MAP)):
        assert cli.main(["plot", "--html", f"{name}.html", *arguments]) == 0
        assert f"{name}.html" in capsys.readouterr().out
    pages = [(tmp_path / f"{name}.html").read_text() for name in ("any", "same", "map")]
    assert pages[0] == pages[1] != pages[2]
