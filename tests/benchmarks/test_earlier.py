"""Kernels beside those of another commit: each with its own header and neighbour, and both checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma
from benchmarks import kernels
from benchmarks.kernels import earlier, processes
from benchmarks.kernels.figures import Figure
from cuda_tma._compile.nvrtc import compile_source
from tests.support.machine_code import machine_code

NEIGHBOUR = 'WHO = "of then"'
EXAMPLE = """
from _example import WHO
LARGE, SOURCE, LEFT = (1, 2), "#include <cuda_tma/of_then.cuh>", []
def cases(sizes):
    for size in sizes:
        LEFT.clear()
        yield f"{size}", lambda: LEFT.append(WHO), {"rival": lambda: LEFT.append("rival")}, 8, 16
        assert sorted(set(LEFT)) == ["of then", "rival"]
"""


@pytest.fixture
def folder(tmp_path):
    """That of another commit."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "_example.py").write_text(NEIGHBOUR)
    (tmp_path / "examples" / "gemm.py").write_text(EXAMPLE)
    headers = tmp_path / "cuda_tma" / "include" / "cuda_tma"
    headers.mkdir(parents=True)
    (headers / "of_then.cuh").write_text("#pragma once\n#include <cuda_tma/again.cuh>\nint a;\n")
    return tmp_path


@pytest.mark.parametrize("neighbour", [None, "of now"])
def test_both_are_timed_and_checked(folder, monkeypatch, neighbour):
    (folder / "cuda_tma" / "include" / "cuda_tma" / "again.cuh").write_text("")
    monkeypatch.delitem(sys.modules, "_example", raising=False)
    if neighbour:
        monkeypatch.setitem(sys.modules, "_example", neighbour)
    ran = []

    def cases(sizes):
        for size in sizes:
            yield f"case {size}", lambda: ran.append("now"), {"rival": lambda: ran.append("rival")}, 8, 16

    monkeypatch.setattr(earlier, "example", lambda name: SimpleNamespace(LARGE=(5, 6), cases=cases))
    pair = earlier.Pair("gemm", folder)
    assert sys.modules.get("_example") == neighbour
    assert pair.earlier.SOURCE == "\nint a;\n"
    found = []
    for case, ours, rivals, *work in pair.cases(pair.LARGE):
        found.append((case, list(rivals), *work))
        ours()
        rivals["earlier"]()
    assert found == [("case 5", ["earlier"], 8, 16), ("case 6", ["earlier"], 8, 16)]
    assert ran == ["rival", "now"] * 2
    with pytest.raises(AssertionError):  # who launches nothing is found out, there as here
        list(pair.cases(pair.LARGE))


def test_a_header_in_the_source_is_the_same_code():
    """Headers that are included twice, once each; those that are for several times, each time."""
    source = kernels.example("conv_im2col").SOURCE
    alone = earlier.with_headers(source, Path(cuda_tma.include_path()))
    assert "#include" not in re.sub("//.*", "", alone)
    options = {"target": "sm_90a"}
    one, other = (machine_code(compile_source(text, "convolution", **options).cubin) for text in (alone, source))
    assert one == other


def test_a_table_of_processes(folder, monkeypatch, capsys):
    asked = []

    def in_processes(*asked_for):
        asked.append(asked_for)
        times = ((1.0, 1.01), (1.0, 1.02), (1.0, 1.03))
        return [[Figure("gemm", "small", "earlier", (ours,), (its,), "burst", 8, 16)] for ours, its in times]

    monkeypatch.setattr(processes, "in_processes", in_processes)
    earlier.main([str(folder), "gemm", "--runs", "3"])
    assert asked == [(["gemm"], 3, ["--earlier", str(folder)])]
    assert "| earlier | 102.0% | 101.0% to 103.0% |" in capsys.readouterr().out


def test_a_folder_without_examples_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        earlier.main([str(tmp_path)])
    assert "does not hold examples and cuda_tma/include" in capsys.readouterr().err
