"""Kernels with a watchdog beside themselves without: one compiled so, and both run and are checked."""

from __future__ import annotations

from types import SimpleNamespace

import cuda_tma
from benchmarks.kernels import processes, watched
from benchmarks.kernels.figures import Figure


def test_one_has_a_watchdog_and_both_run(monkeypatch):
    ran, compiled = [], []
    monkeypatch.setattr(cuda_tma, "compile", lambda source, **asked: compiled.append((source, asked)))

    def example(name):
        def cases(sizes):
            module.cuda_tma.compile(name)
            for size in sizes:
                yield f"case {size}", lambda: ran.append(module), {"rival": lambda: ran.append("rival")}, 8, 16

        module = SimpleNamespace(cuda_tma=cuda_tma, LARGE=(5, 6), cases=cases)
        return module

    monkeypatch.setattr(watched, "example", example)
    pair = watched.Watched("gemm")
    for case, run, rivals, *work in pair.cases(pair.LARGE):
        assert case in ("case 5", "case 6") and work == [8, 16] and [*rivals] == ["without watchdog"]
        run()
        rivals["without watchdog"]()
    assert compiled == [("gemm", {"watchdog_ms": watched.WATCHDOG_MS}), ("gemm", {})]
    assert ran == ["rival", "rival", pair.watched, pair.plain] * 2


def test_a_table_of_processes(monkeypatch, capsys):
    asked = []

    def in_processes(*asked_for):
        asked.append(asked_for)
        times = ((1.0, 1.01), (1.0, 1.02), (1.0, 1.03))
        return [[Figure("gemm", "small", "without watchdog", (ours,), (its,), "burst", 8, 16)] for ours, its in times]

    monkeypatch.setattr(processes, "in_processes", in_processes)
    watched.main(["gemm", "--runs", "3"])
    assert asked == [(["gemm"], 3, ["--watched"])]
    assert "| without watchdog | 102.0% | 101.0% to 103.0% |" in capsys.readouterr().out
