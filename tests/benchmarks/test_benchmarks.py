"""Tests of the benchmarks' command, and of the benchmark suites that need no GPU."""

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import comparison, host, nvrtc, simulator, start
from benchmarks.comparison import Comparison, Row
from cuda_tma import TiledParams


@pytest.fixture
def called(monkeypatch):
    """Replace the timer, and return the function that each benchmark measures, by the name of the benchmark."""
    found = {}
    make = host.work
    for suite in (host, nvrtc):
        monkeypatch.setattr(
            suite, "work", lambda name, run, goal_us=0: found.setdefault(name, run) and make(name, run, goal_us)
        )
    return found


def test_the_host_suite_measures_the_named_calls(called):
    assert host.unavailable() == ""
    works = [*host.knowledge_works(2), *host.knowledge_works(5), *host.reading_works(), host.emulator_work()]
    assert {work.name for work in works} == set(called) and len(called) == len(works) >= 11
    results = {name: run() for name, run in called.items()}
    host.sweep_work()
    assert [*called.values()][-1]() == 4096 * 4096 * 4
    assert results["`check`, rank 2"] == () and len(results["`encode`, rank 5"]) == 128
    assert results["`decode`, rank 2"] == host.contiguous(2)
    assert [d.field for d in results["`diff`, rank 5"]] == ["swizzle", "swizzle_repeat_bytes"]
    assert works[0].prepare()(2) > 0 and works[0].goal.limit_ns(7) == 20_000 and works[-2].goal is None


def test_the_host_suite_makes_the_named_maps():
    assert host.contiguous(5) == TiledParams(
        data_type=7,
        global_address=1 << 32,
        global_dim=(64,) * 5,
        global_strides=(256, 64 * 256, 64**2 * 256, 64**3 * 256),
        box_dim=(32, 8, 2, 2, 2),
        element_strides=(1,) * 5,
        swizzle=3,
        l2_promotion=2,
    )
    assert host.contiguous(2).box_dim == (32, 8)


def test_the_command_prints_and_writes(monkeypatch, tmp_path, capsys):
    table = Comparison("Title", [Row("`f`", (1000.0, 2000.0, 4000.0))], unit="µs")
    monkeypatch.setattr(host, "tables", lambda repeats, runs: [table] if (repeats, runs) == (16, 3) else [])
    command.main(["host", "--repeats", "16", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert host.machine() in out and "| `f` | 2 | 1 to 4 |" in out
    assert (tmp_path / "host.md").read_text().startswith(host.machine())
    assert json.loads((tmp_path / "host.json").read_text())["tables"][0]["rows"][0]["samples_ns"] == [1000, 2000, 4000]


def test_a_suite_that_cannot_run_gives_the_reason(monkeypatch, capsys):
    monkeypatch.setattr(host, "unavailable", lambda: "no reason")
    monkeypatch.setattr(host, "tables", lambda repeats, runs: pytest.fail("it ran"))
    command.main(["host"])
    assert "`host` was not run: no reason" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["no_such_suite"], ["--repeats", "14"], ["--runs", "0"]])
def test_mistakes_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert "suites are " in capsys.readouterr().err


# ---- the simulator ----


def test_the_simulator_suite_runs_the_named_kernels(monkeypatch):
    assert simulator.unavailable() == ""
    monkeypatch.setattr(
        simulator,
        "kernels",
        lambda: [("a", simulator.saxpy(1000), simulator.Limit()), ("b", simulator.gemm(256), simulator.Limit(9))],
    )
    for name in ("_schedules", "_loads", "_memory"):
        monkeypatch.setattr(simulator, name, lambda: "another")
    table, *others = simulator.tables(15, 1)
    assert others == ["another"] * 3
    first, second = table.rows
    assert first.name.startswith("a (0.0") and first.goal is None and len(first.samples_ns) == simulator.SAMPLES
    assert second.goal.limit_ns(0) == 9e9 and "| limit" not in table.verdict(second)


# ---- the run-time compiler ----


# The stand-in for the header of CCCL declares the names that a load uses.
STAND_IN_FOR_CCCL = """
namespace cuda { namespace std { using uint64_t = unsigned long long; } namespace ptx {
enum Word { sem_release, scope_cluster, scope_cta, space_shared, space_cluster, space_global };
template <typename... Ts> __device__ void mbarrier_init(Ts...) {}
template <typename... Ts> __device__ void fence_mbarrier_init(Ts...) {}
template <typename... Ts> __device__ void mbarrier_arrive_expect_tx(Ts...) {}
template <typename... Ts> __device__ void cp_async_bulk_tensor(Ts...) {}
template <typename... Ts> __device__ bool mbarrier_try_wait_parity(Ts...) { return true; }
} }
"""


def test_the_compiler_is_timed_with_each_header(monkeypatch, tmp_path, called):
    (tmp_path / "cuda").mkdir()
    for name in ("ptx", "barrier"):
        (tmp_path / "cuda" / name).write_text("#define CCCL_VERSION 3000001\n")
    (tmp_path / "cuda" / "ptx").write_text(STAND_IN_FOR_CCCL)
    (tmp_path / "cuda" / "version").write_text("#  define CCCL_VERSION 3000001\n")
    monkeypatch.setattr(nvrtc, "cccl", lambda: tmp_path)
    assert nvrtc.unavailable() == "" and nvrtc.machine().endswith("CCCL 3.0.1")
    names = [work.name for work in nvrtc.works()]
    assert names == list(called) and [name.partition("`")[2] for name in names[1:]] == [
        "<cuda_tma/tma.cuh>`",
        "<cuda_tma/tile.cuh>`",
        "<cuda/ptx>`",
        "<cuda/ptx>`",
        "<cuda/barrier>`",
    ]
    assert [run() for run in called.values()] == [None] * 6
    (tmp_path / "cuda" / "ptx").write_text("#error not this one\n")
    with pytest.raises(RuntimeError, match="not this one"):
        called[names[3]]()


def test_without_cccl_there_are_our_rows(monkeypatch):
    monkeypatch.setattr(nvrtc, "cccl", lambda: None)
    monkeypatch.setattr(host, "python", lambda statement, **names: lambda calls: calls * 1e6)
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 5)
    (table,) = nvrtc.tables(15, 3)
    assert [row.samples_ns for row in table.rows] == [(5e6,) * nvrtc.MOST_REPEATS] * 3 and table.unit == "ms"
    assert "pip install nvidia-cuda-cccl" in table.notes[0] and nvrtc.machine().endswith("no CCCL found")


# ---- the start of a process ----


def test_a_start_is_timed_in_processes_of_its_own(tmp_path):
    compiled, kept = start.works(str(tmp_path), False)
    assert start.unavailable() == "" and kept.goal.limit_ns(0) == 5e6
    first = compiled.prepare()(2)
    assert not list(tmp_path.iterdir())
    later = kept.prepare()(2)
    assert len(list(tmp_path.glob("*.kernel"))) == 1 and first > later > 0


def test_a_process_that_fails_gives_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "PROCESS", "raise SystemExit('no luck')")
    with pytest.raises(RuntimeError, match="no luck"):
        start.works(str(tmp_path), False)[0].prepare()


def test_the_table_of_starts(monkeypatch):
    monkeypatch.setattr(start, "timer", lambda folder, way, has_gpu: lambda calls: 4e6 if way == "kept" else 60e6)
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 1)
    (table,) = start.tables(20, 3)
    assert [(row.name, row.median_ns) for row in table.rows] == [("compiled", 60e6), ("from disk", 4e6)]
    assert len(table.rows[0].samples_ns) == start.MOST_REPEATS and table.verdict(table.rows[1]) == "yes: limit 5 ms"
    assert nvrtc.machine() in start.machine()


def test_tritons_gemm_multiplies_without_an_error():
    product = np.full((256, 256), np.nan, np.float16)
    report = simulator.triton_gemm(256, product=product)()
    a, b = (np.random.default_rng(seed).standard_normal((256, 256)).astype(np.float16) for seed in range(2))
    assert report.errors == ()
    assert np.allclose(product, a.astype(np.float32) @ b.astype(np.float32).T, atol=0.05)
