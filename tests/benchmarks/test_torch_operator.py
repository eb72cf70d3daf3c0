"""Tests of the suite of torch operators in the benchmarks, on a machine without a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cuda_tma
from benchmarks import torch_operator as suite
from benchmarks.comparison import Goal
from cuda_tma import simulate

torch = pytest.importorskip("torch")


def test_each_row_of_a_call_runs(monkeypatch):
    """With CPU tensors, the operators of the package run on the simulator, and a stand-in replaces the launches."""
    gpu, launched, compared = simulate.Device(multiprocessor_count=2), [], []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "stream")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(cuda_tma, "launch", lambda *given: launched.append(given))
    monkeypatch.setattr(suite, "compare", lambda *given: compared.append(given))
    bench = suite.Bench(device="cpu", simulator=gpu)
    bench.x.fill_(3)
    suite.calls(bench, 15)
    (_, works, _, floor, _, unit) = compared[0]
    assert floor == (suite.EMPTY, suite.ALLOCATION, suite.LAUNCH) and unit == "µs"
    goals = {each.name: each.goal for each in works if each.goal is not None}
    assert goals[suite.OURS] == Goal(1.1, floor=(suite.HAND,), paired=True) and suite.OURS_INTO in goals
    for work in works:
        work.prepare()(2)
    assert [given[0] for given in launched] == [None] * 2 + ["stream"] * 4
    assert torch.equal(bench.y, bench.x) and bench.y._version == 4
    assert torch.equal(bench.ours(bench.x, 2.0), bench.x)


def test_the_suite_needs_a_gpu_and_torch(monkeypatch):
    monkeypatch.setattr(suite.gpu, "unavailable", lambda: "")
    monkeypatch.setattr(suite, "find_spec", lambda name: None)
    assert suite.unavailable() == "torch is not installed"
    monkeypatch.setattr(suite, "find_spec", lambda name: SimpleNamespace())
    assert suite.unavailable() == ""
