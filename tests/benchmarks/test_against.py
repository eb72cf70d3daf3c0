"""Tests of benchmarks that compare an example with a variant, such as an earlier commit or a kernel without a
watchdog."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma
from benchmarks import kernels
from benchmarks.kernels import against
from benchmarks.kernels.figures import Figure
from cuda_tma._compile.nvrtc import compile_source
from tests.support.machine_code import machine_code

NEIGHBOR = 'WHO = "of then"'
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
    """Return a folder that stands for the repository at another commit."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "_example.py").write_text(NEIGHBOR)
    (tmp_path / "examples" / "gemm.py").write_text(EXAMPLE)
    headers = tmp_path / "cuda_tma" / "include" / "cuda_tma"
    headers.mkdir(parents=True)
    (headers / "of_then.cuh").write_text("#pragma once\n#include <cuda_tma/again.cuh>\nint a;\n")
    return tmp_path


def recording(ran, name):
    """Return an example whose cases record their runs."""

    def cases(sizes):
        for size in sizes:
            yield f"case {size}", lambda: ran.append(name), {"rival": lambda: ran.append("rival")}, 8, 16

    return SimpleNamespace(LARGE=(5, 6), SOURCE="load(a, evict_last());", cuda_tma=cuda_tma, cases=cases)


def run_all(pair):
    """Run each case of an example and the case's rival, and return their names and amounts of work."""
    found = []
    for case, ours, rivals, *work in pair.cases(pair.LARGE):
        found.append((case, *rivals, *work))
        for run in (ours, *rivals.values()):
            getattr(run, "before", lambda: None)()
            run()
    return found


@pytest.mark.parametrize("neighbor", [None, "of now"])
def test_the_kernel_of_another_commit_has_its_own_neighbor_and_header(folder, monkeypatch, neighbor):
    (folder / "cuda_tma" / "include" / "cuda_tma" / "again.cuh").write_text("")
    monkeypatch.delitem(sys.modules, "_example", raising=False)
    if neighbor:
        monkeypatch.setitem(sys.modules, "_example", neighbor)
    ran = []
    monkeypatch.setattr(against, "example", lambda name: recording(ran, "now"))
    pair = against.pair_of(str(folder), "gemm")
    assert sys.modules.get("_example") == neighbor
    assert pair.variant.SOURCE == "\nint a;\n"
    assert run_all(pair) == [("case 5", "earlier", 8, 16), ("case 6", "earlier", 8, 16)]
    assert ran == ["rival", "now"] * 2
    with pytest.raises(AssertionError):  # The comparison reports a missing launch, also in the earlier example.
        list(pair.cases(pair.LARGE))


def test_one_has_a_watchdog_and_both_run(monkeypatch):
    ran, compiled = [], []
    monkeypatch.setattr(cuda_tma, "compile", lambda source, **asked: compiled.append((source, asked)))
    monkeypatch.setattr(against, "example", lambda name: recording(ran, name))
    pair = against.pair_of("unwatched", "gemm")
    for module in (pair.ours, pair.variant):
        module.cuda_tma.compile("source")
    assert compiled == [("source", {"watchdog_ms": against.WATCHDOG_MS}), ("source", {})]
    assert run_all(pair) == [("case 5", "without watchdog", 8, 16), ("case 6", "without watchdog", 8, 16)]
    assert ran == ["rival", "rival", "gemm", "gemm"] * 2


def test_the_next_kernel_is_timed_after_each(monkeypatch):
    ran, made = [], iter(("plain", "keeping"))
    monkeypatch.setattr(against, "example", lambda name: recording(ran, next(made)))
    monkeypatch.setattr(against, "_sums", lambda: lambda: ran.append("next"))
    pair = against.pair_of("evicted", "copy_2d")
    assert (pair.ours.SOURCE, pair.variant.SOURCE) == ("load(a, evict_last());", "load(a, evict_normal());")
    pair.LARGE = (5,)
    pair.variant.LARGE = (5,)
    assert run_all(pair) == [
        ("case 5", "without evict_last", 8, 16),
        ("case 5: the next kernel", "after it without evict_last", 0, 8 * 3 * (8 << 20)),
    ]
    assert ran == ["rival", "rival", "keeping", "plain", "keeping", "next", "plain", "next"]


def test_a_header_in_the_source_is_the_same_code():
    """In the expanded source, a header with an include guard occurs once. Any other header occurs at each inclusion."""
    source = kernels.example("conv_im2col").SOURCE
    alone = against.with_headers(source, Path(cuda_tma.include_path()))
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

    monkeypatch.setattr(against, "in_processes", in_processes)
    against.main([str(folder), "gemm"])
    against.main(["evicted", "--runs", "2"])
    assert asked == [
        (["gemm"], 3, ["--against", str(folder)]),
        (against.EXAMPLES["evicted"], 2, ["--against", "evicted"]),
    ]
    assert "| earlier | 102.0% | 101.0% to 103.0% |" in capsys.readouterr().out


def test_a_folder_without_examples_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        against.main([str(tmp_path)])
    assert "does not hold examples and cuda_tma/include" in capsys.readouterr().err
