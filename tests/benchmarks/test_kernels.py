"""Tests of the timing and the tables of the examples' kernels, without a GPU."""

import ctypes
import dataclasses
import inspect
import json
import subprocess
import threading

import pytest

from benchmarks import __main__ as command
from benchmarks import kernels
from benchmarks.kernels import FAMILIES, chart, processes, regimes
from benchmarks.kernels.figures import Figure, Figures, summary, together

COPY = Figure("copy_2d", "4 GiB", "cuMemcpyDtoD", (2.0,), (1.98,), "in turns", 0, 8 << 30, (1980.0,), (0.0,))
WORK = 2 * 8192**3, 6 * 8192**2
PRODUCT = Figure("gemm", "8192 cubed", "torch.matmul", (1.25, 1.5, 1.0), (1.5, 1.5, 1.5), "sustained", *WORK)


def test_figures_as_markdown():
    broken = Figure("transpose", error="element (3, 5) | is wrong")
    powered = Figure("gemm", "small", "cuBLAS", (1.0,), (1.0,), "burst", 10**12, 1, (1455.0,), (698.4,), (51.0,))
    lines = figures_markdown(COPY, broken, PRODUCT, powered)
    assert lines[0] == "## Title" and lines[-1] == "A note."
    assert lines[4:8] == [
        "| `copy_2d` | 4 GiB | in turns | 4.29 | 4.34 | TB/s | cuMemcpyDtoD | 99.0% | 99.0% to 99.0% | 1980 MHz |",
        "| `transpose` | element (3, 5) \\| is wrong |  |  |  |  |  |  |  |  |",
        "| `gemm` | 8192 cubed | sustained | 880 | 733 | TFLOP/s | torch.matmul | 120.0% | 100.0% to 150.0% |  |",
        "| `gemm` | small | burst | 1000 | 1000 | TFLOP/s | cuBLAS | 100.0% | 100.0% to 100.0% | 1455 MHz, 698 W, 51 °C |",  # noqa: E501
    ]


def figures_markdown(*figures):
    return command.markdown(Figures("Title", figures, ("A note.",))).splitlines()


def test_processes_are_merged_by_case_rival_and_regime():
    burst = dataclasses.replace(PRODUCT, regime="burst", ours_ms=(1.0,), rival_ms=(1.0,))
    other = dataclasses.replace(COPY, ours_ms=(3.0,), clock_mhz=(1500.0,))
    found = together([[COPY, burst], [other, dataclasses.replace(burst, rival_ms=(2.0,))]])
    assert [(f.kernel, f.ours_ms, f.ratios) for f in found] == [
        ("copy_2d", (2.0, 3.0), [0.99, 0.66]),
        ("gemm", (1.0, 1.0), [1.0, 2.0]),
    ]
    assert found[0].clock_mhz == (1980.0, 1500.0)


def test_a_figure_passes_through_json():
    assert Figure.of(json.loads(json.dumps(dataclasses.asdict(PRODUCT)))) == PRODUCT


def timed_examples():
    return [name for family in FAMILIES.values() for name in family.examples]


@pytest.mark.parametrize("name", timed_examples())
def test_each_timed_example_gives_cases_of_sizes(name):
    module = kernels.example(name)
    assert inspect.isgeneratorfunction(module.cases) and len(inspect.signature(module.cases).parameters) == 1
    assert module.SMALL and module.LARGE and not [size for size in module.SMALL if size in module.LARGE]


def test_every_example_with_cases_is_timed():
    paths = kernels.EXAMPLES.glob("[!_]*.py")
    assert {path.stem for path in paths if "\ndef cases(" in path.read_text()} == set(timed_examples())


class Example:
    """A copy example whose result is wrong if the launch with the number `wrong` is the last launch."""

    LARGE = (1, 2)

    def __init__(self, wrong):
        self.wrong, self.launches = wrong, 0

    def cases(self, sizes):
        for size in sizes:
            yield f"case {size}", self.launch, {"rival": lambda: None}, 0, 8
            assert self.launches != self.wrong, "element (3, 5) is wrong\nand more"

    def launch(self):
        self.launches += 1


@pytest.mark.parametrize(("wrong", "cases"), [(0, ["case 1", "case 2", ""][:2]), (3, [""]), (6, ["case 1", ""])])
def test_results_of_the_timed_launches_are_checked(monkeypatch, wrong, cases):
    """The benchmark reports a time only after the example has checked the results of the last launch."""
    freed = []
    monkeypatch.setattr(kernels, "example", lambda name: Example(wrong))
    monkeypatch.setattr(kernels, "_free_memory", lambda: freed.append(1))

    def in_turns(runs):
        for run in runs * 3:
            run()
        return [1.0, 2.0]

    monkeypatch.setattr(kernels.regimes, "in_turns", in_turns)
    found = list(kernels.measured("copy_2d"))
    assert [figure.case for figure in found] == cases and freed == [1]
    assert [figure.error for figure in found if figure.error] == ["element (3, 5) is wrong"] * bool(wrong)
    assert all(figure.ratios == [2.0] for figure in found if not figure.error)


def test_tensor_cores_are_timed_in_both_regimes(monkeypatch):
    for name, ms in (("sustained", 2.0), ("burst", 1.0)):
        regime = lambda runs, ms=ms: [ms] * len(runs)  # noqa: E731
        regime.__name__ = name
        monkeypatch.setattr(kernels.regimes, name, regime)
    found = kernels.timings("gemm", "small", print, {"one": print, "other": print}, 8, 16)
    assert [(f.regime, f.rival, f.ours_ms, f.flops, f.moved_bytes) for f in found] == [
        ("sustained", "one", (2.0,), 8, 16),
        ("sustained", "other", (2.0,), 8, 16),
        ("burst", "one", (1.0,), 8, 16),
        ("burst", "other", (1.0,), 8, 16),
    ]


def test_tables_are_of_processes(monkeypatch):
    figures = {"copy_2d": [COPY], "gemm": [PRODUCT, Figure("gemm", error="gone")]}
    monkeypatch.setattr(kernels, "in_processes", lambda names, runs: runs * [figures.get(names[0], [])])
    moving, multiplying, *rest = kernels.tables(15, 3)
    assert [f.ours_ms for f in moving.figures] == [(2.0, 2.0, 2.0)] and len(rest) == len(FAMILIES) - 2
    assert [(f.kernel, f.error) for f in multiplying.figures] == [("gemm", ""), ("gemm", "gone")]
    assert "written once" in moving.notes[-1] and "of 3 processes" in moving.notes[-1]
    assert "after half a second" in multiplying.notes[-1] and "L2 contains all operands" in multiplying.notes[-1]


def test_a_single_family_leaves_the_others_unchanged(monkeypatch, tmp_path, capsys):
    ours_ms = iter([2.0, 1.0])
    monkeypatch.setattr(kernels, "unavailable", lambda: "")
    monkeypatch.setattr(kernels, "machine", lambda: "a GPU")
    monkeypatch.setattr(kernels, "draw", lambda tables, path: path.write_text(str(len(tables))))
    made = lambda names, runs: [[dataclasses.replace(COPY, kernel=names[0], ours_ms=(next(ours_ms),))]]  # noqa: E731
    monkeypatch.setattr(kernels, "in_processes", made)
    for family in ("gemm", "memory"):
        command.main(["kernels", "--runs", "1", "--family", family, "--output", str(tmp_path)])
    lines = (tmp_path / "kernels.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("##")] == ["## Kernels that move data", "## Matrix products"]
    assert [line.split(" | ")[3] for line in lines if line.startswith("| `")] == ["8.59", "4.29"]
    assert (tmp_path / "kernels.svg").read_text() == "2"


def test_several_cases_are_summed_up():
    assert summary([COPY, Figure("gemm", error="gone")]) == []
    other = dataclasses.replace(COPY, case="1 GiB", ours_ms=(1.0,))
    (line,) = summary([COPY, other])
    assert (
        line == "`copy_2d`, in turns, has 140.0% of the speed of cuMemcpyDtoD "
        "(geometric mean of 2 cases; least 99.0%, greatest 198.0%)."
    )


def test_a_process_that_ends_early_is_reported(monkeypatch):
    done = type("Done", (), {"stdout": json.dumps(dataclasses.asdict(COPY)), "stderr": "a\nkilled", "returncode": 3})
    monkeypatch.setattr(processes.subprocess, "run", lambda command, **more: done)
    assert processes.in_a_process(["copy_2d", "gemm"]) == [COPY, Figure("gemm", error="exit status 3: killed")]

    def late(command, **more):
        raise subprocess.TimeoutExpired(command, 1, json.dumps(dataclasses.asdict(COPY)).encode())

    monkeypatch.setattr(processes.subprocess, "run", late)
    assert processes.in_a_process(["copy_2d", "gemm"])[1].error == f"no end within {processes.PER_RUN_S} s"


def test_processes_run_on_every_gpu_at_once(monkeypatch):
    """In the test, a barrier waits for exactly one process of each GPU. The second process of the first GPU runs
    later."""
    asked, both = [], threading.Barrier(2)

    def in_a_process(names, options, gpu):
        if (gpu, len([one for one in asked if one == gpu])) != ("5", 1):
            asked.append(gpu)
            both.wait(20)
        else:
            asked.append(gpu)
        return [dataclasses.replace(COPY, case=gpu)]

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    monkeypatch.setattr(processes, "in_a_process", in_a_process)
    cases = [figure.case for (figure,) in processes.in_processes(["copy_2d"], 3)]
    assert cases == ["5", "5", "3"] and sorted(asked) == ["3", "5", "5"]


def test_a_process_sees_only_its_gpu(monkeypatch):
    seen = []
    done = type("Done", (), {"stdout": "", "stderr": "", "returncode": 1})
    monkeypatch.setattr(processes.subprocess, "run", lambda command, **more: seen.append(more["env"]) or done)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert processes.visible_gpus() == [] and len(processes.in_processes(["copy_2d"], 2)) == 2
    processes.in_a_process(["copy_2d"], gpu="3")
    assert seen[:2] == [None, None] and seen[2]["CUDA_VISIBLE_DEVICES"] == "3"


def test_a_process_gives_a_line_for_each_figure():
    """Without a GPU, the benchmark prints a line for each example with the reason."""
    pytest.importorskip("torch")
    (figure,) = processes.in_a_process(["copy_2d"])
    assert figure.kernel == "copy_2d" and (figure.error or figure.ours_ms)


class FakeGpu:
    """A fake clock that advances with each run, in place of torch's events."""

    def __init__(self, monkeypatch):
        torch = pytest.importorskip("torch")
        self.now, self.synchronized, self.slept, self.held_up = 0.0, 0, [], 0
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = gpu.now

            def elapsed_time(self, end):
                return end.at - self.at

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: setattr(self, "synchronized", self.synchronized + 1))
        monkeypatch.setattr(
            torch.cuda, "_sleep", lambda cycles: setattr(self, "held_up", self.held_up + 1), raising=False
        )
        monkeypatch.setattr(regimes.time, "sleep", self.slept.append)
        self.order = []

    def run(self, name, ms):
        def run():
            self.order.append(name)
            self.now += ms

        return run


def test_runs_take_turns(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    assert regimes.in_turns([gpu.run("a", 2.0), gpu.run("b", 3.0)]) == [2.0, 3.0]
    assert gpu.order[:6] == ["a", "b", "b", "a", "a", "b"] and len(gpu.order) == 2 * 45
    assert gpu.synchronized == 1 and gpu.held_up == 3


def test_a_run_after_another_is_timed_separately(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    assert regimes.in_turns([regimes.After(gpu.run("a", 9.0), gpu.run("b", 3.0)), gpu.run("c", 1.0)], 4) == [3.0, 1.0]
    assert gpu.order[:6] == ["a", "b", "c", "c", "a", "b"] and len(gpu.order) == 3 * 9


def test_short_runs_wait_for_python_and_are_not_too_many(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    assert regimes.sustained([gpu.run("a", 0.01), gpu.run("b", 0.25)]) == [pytest.approx(0.01), pytest.approx(0.25)]
    assert len(gpu.order) == 2 * (4 + 1923 + regimes.MOST_TURNS) and gpu.held_up == 1 + -(
        -(1923 + 2000) // regimes.BATCH
    )


def test_sustained_work_is_counted_after_half_a_second(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    hot = []

    def throttled():  # The runs become slower after half a second.
        hot.append(gpu.now)
        gpu.now += 6.0 if gpu.now < 500 else 9.0

    assert regimes.sustained([throttled, gpu.run("b", 4.0)]) == [9.0, 4.0]
    assert len(hot) == 4 + 50 + 70 and gpu.held_up == 1


def test_a_burst_is_after_a_pause(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    assert regimes.burst([gpu.run("a", 2.0), gpu.run("b", 3.0)]) == [2.0, 3.0]
    eights = ["".join(gpu.order[at : at + 8]) for at in range(0, len(gpu.order), 8)]
    assert eights == ["a" * 8, "b" * 8, "b" * 8, "a" * 8]
    assert gpu.slept == [0.25] * 4 and gpu.held_up == 4


def test_clock_and_power_are_read_during_a_run(monkeypatch):
    values = {
        "nvmlDeviceGetClockInfo": [1980, 1455, 1450],
        "nvmlDeviceGetPowerUsage": [400_000, 698_400, 690_000],
        "nvmlDeviceGetTemperature": [40, 51, 50],
    }

    def reader(name):
        def read(device, *arguments):
            if not values[name]:
                done.set()
                return 1
            ctypes.cast(arguments[-1], ctypes.POINTER(ctypes.c_uint))[0] = values[name].pop(0)
            return 0

        return read

    done = threading.Event()
    library = type("Nvml", (), {name: staticmethod(reader(name)) for name in values})
    monkeypatch.setattr(regimes, "_nvml", lambda: (library, ctypes.c_void_p()))
    with regimes.Watch(period_s=0.0001) as watch:
        assert done.wait(20)
    assert (watch.clock_mhz, watch.power_w, watch.temperature_c) == (1455, 698.4, 51)


def test_without_nvml_nothing_is_read(monkeypatch):
    monkeypatch.setattr(regimes.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with regimes.Watch(period_s=0.0001) as watch:
        pass
    assert (watch.clock_mhz, watch.power_w, watch.temperature_c) == (0, 0, 0)


def test_the_kernels_give_the_reason_that_they_cannot_run(monkeypatch):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: None)
    assert kernels.unavailable().startswith("torch is not installed")


def test_a_chart_for_each_family(tmp_path):
    pytest.importorskip("matplotlib")
    broken = Figure("transpose", error="is wrong")
    beside = dataclasses.replace(COPY, rival="torch.Tensor.copy_")
    fast = dataclasses.replace(PRODUCT, regime="burst", rival_ms=(0.5, 0.5, 0.5))
    tables = [Figures("Moving", [COPY, beside, broken]), Figures("Multiplying", [PRODUCT, fast]), Figures("None", [])]
    for name in ("a.svg", "b.svg"):
        kernels.draw(tables, tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    for shown in (
        "Moving",
        "TB/s",
        "copy_2d: 4 GiB",
        "torch.Tensor.copy_",
        "Multiplying",
        "gemm: 8192 cubed",
        "TFLOP/s",
    ):
        assert text.count(f">{shown}</text>") == 1
    assert "is wrong" not in text and "None" not in text
    assert text == (tmp_path / "b.svg").read_text()
    assert (
        chart.best([COPY, PRODUCT], "cuMemcpyDtoD") == COPY.rival_speed and chart.best([PRODUCT], "cuMemcpyDtoD") == 0
    )


def test_a_chart_of_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    kernels.draw([Figures("Nothing", [])], tmp_path / "a.svg")
    assert "</svg>" in (tmp_path / "a.svg").read_text()
