"""The benchmarks measure what they say, and print it."""

import ctypes
import dataclasses
import inspect
import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import cuda_tma
from benchmarks import __main__ as command
from benchmarks import comparison, gpu, host, kernels, nvrtc, timing
from benchmarks.comparison import Comparison, Goal, Row, Work
from benchmarks.gpu import create, floor, launch, many, scene
from benchmarks.kernels import regimes, roofline
from benchmarks.kernels.figures import Figure, Figures, together


def test_each_case_is_timed_in_each_round(monkeypatch):
    order = []
    monkeypatch.setattr(timing, "calls_for", lambda run: 2)
    cases = [timing.Case(name, lambda name=name: order.append(name), goal) for name, goal in (("a", 1.0), ("b", None))]
    measured = timing.measure(cases, repeats=3)
    assert order == ["a", "a", "b", "b", "b", "b", "a", "a", "a", "a", "b", "b"]
    assert [(t.name, len(t.samples_us), t.goal_us) for t in measured] == [("a", 3, 1.0), ("b", 3, None)]


def test_a_repeat_is_microseconds_a_call(monkeypatch):
    clock = iter((1_000_000, 1_600_000))
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: next(clock))
    assert timing.one_repeat(lambda: None, calls=100) == 6.0


def test_markdown():
    timings = [timing.Timing("`f`", (1.0, 2.0, 3.0, 1234.5), 20), timing.Timing("`g`", (0.125,) * 3)]
    lines = timing.markdown(timing.Table("Title", timings, ("A note.",))).splitlines()
    assert lines[:3] == ["## Title", "", "|  | median, µs | middle half, µs | goal, µs |"]
    assert lines[4:] == ["| `f` | 2.5 | 1.25 to 927 | < 20 |", "| `g` | 0.125 | 0.125 to 0.125 |  |", "", "A note."]


def test_a_table_in_milliseconds():
    table = timing.Table("Title", [timing.Timing("`f`", (1000.0, 2500.0, 3000.0, 1566000.0), 20000)], unit="ms")
    lines = timing.markdown(table).splitlines()
    assert lines[2] == "|  | median, ms | middle half, ms | goal, ms |"
    assert lines[4] == "| `f` | 2.75 | 1.38 to 1180 | < 20 |"


def test_the_host_suite_measures_what_runs():
    assert host.unavailable() == ""
    cases = [*host.knowledge_cases(2), *host.knowledge_cases(5), *host.reading_cases(), host.emulator_case()]
    assert len({case.name for case in cases}) == len(cases) >= 12
    results = {case.name: case.run() for case in cases}
    assert host.sweep_case().run() == 4096 * 4096 * 4
    assert results["`check`, rank 2"] == () and len(results["`encode`, rank 5"]) == 128
    assert results["`decode`, rank 2"] == host.contiguous(2)
    assert [d.field for d in results["`diff`, rank 5"]] == ["swizzle", "swizzle_repeat_bytes"]


def test_the_command_prints_and_writes(monkeypatch, tmp_path, capsys):
    table = timing.Table("Title", [timing.Timing("`f`", (1.0, 2.0, 4.0))])
    monkeypatch.setattr(host, "tables", lambda repeats, runs: [table] if (repeats, runs) == (16, 3) else [])
    command.main(["host", "--repeats", "16", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert timing.machine() in out and "| `f` | 2 | 1 to 4 |" in out
    assert (tmp_path / "host.md").read_text().startswith(timing.machine())
    assert json.loads((tmp_path / "host.json").read_text())["tables"][0]["timings"][0]["samples_us"] == [1.0, 2.0, 4.0]


def test_a_suite_that_cannot_run_says_why(monkeypatch, capsys):
    monkeypatch.setattr(host, "unavailable", lambda: "no reason")
    monkeypatch.setattr(host, "tables", lambda repeats, runs: pytest.fail("it ran"))
    command.main(["host"])
    assert "`host` was not run: no reason" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["no_such_suite"], ["--repeats", "14"], ["--runs", "0"]])
def test_mistakes_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert "suites are " in capsys.readouterr().err


# ---- comparisons ----


def fixed(*ns):
    """A timer that gives these in turn."""
    values = iter(ns)
    return lambda calls: next(values)


def test_a_goal_is_a_factor_and_an_addition():
    assert Goal(1.3, 250).limit_ns(100) == 380
    assert [str(goal) for goal in (Goal(3), Goal(0, 60), Goal(1.3, 250), Goal(1, floor=("a", "b")))] == [
        "≤ 3 × floor",
        "≤ 60 ns",
        "≤ 1.3 × floor + 250 ns",
        "≤ 1 × a + b",
    ]


def test_a_comparison_as_markdown():
    rows = [
        Row("C", (10, 20, 30)),
        Row("export", (1, 2, 3)),
        Row("fast", (33, 44, 66), Goal(2, 1)),
        Row("slow", (60, 70, 80), Goal(0, 60)),
        Row("close", (22, 22, 22), Goal(1.05, floor=("C",), paired=True), ratios=(1.0, 1.04, 1.08)),
        Row("unpaired", (22, 22, 22), Goal(1.05, paired=True)),
        Row("absent", error="No module | named cupy"),
    ]
    lines = comparison.markdown(Comparison("Title", rows, ("C", "export"), ("A note.",))).splitlines()
    assert lines[2] == "|  | median, ns | middle half, ns | × floor | goal | met |"
    assert lines[4] == "| C | 20 | 10 to 30 | 0.909 |  |  |"
    assert lines[6] == "| fast | 44 | 33 to 66 | 2 | ≤ 2 × floor + 1 ns | yes: limit 45 ns |"
    assert lines[7] == "| slow | 70 | 60 to 80 | 3.18 | ≤ 60 ns | **no**: limit 60 ns |"
    assert lines[8] == "| close | 22 | 22 to 22 | 1 | ≤ 1.05 × C | yes: 1.040 (1.000 to 1.080) |"
    assert lines[9].endswith("| no floor |")
    assert lines[10:] == ["| absent | No module \\| named cupy |  |  |  |  |", "", "Floor: C + export.", "", "A note."]


def test_without_the_floor_there_is_no_ratio():
    rows = [Row("C", error="no gcc"), Row("ours", (1, 2, 3), Goal(3))]
    assert (
        comparison.markdown(Comparison("Title", rows, ("C",))).splitlines()[5].endswith("|  | ≤ 3 × floor | no floor |")
    )


def test_one_failure_does_not_stop_the_others(monkeypatch):
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 5)

    def absent():
        raise ImportError("No module named 'peer'\nand more")

    works = [
        Work("ours", lambda: fixed(1.0, 2.0, 3.0), is_ours=True),
        Work("absent", absent),
        Work("breaks", lambda: fixed(1.0)),  # StopIteration in the second round
        Work("silent", lambda: 1 / 0),
    ]
    rows = comparison.compare("Title", works, 3, ("ours",)).rows
    assert [(r.samples_ns, r.error) for r in rows] == [
        ((1.0, 2.0, 3.0), ""),
        ((), "No module named 'peer'"),
        ((), "StopIteration"),
        ((), "division by zero"),
    ]


def test_pairs_alternate():
    order = []
    ratios = comparison.paired(lambda calls: order.append("a") or 3.0, lambda calls: order.append("b") or 2.0, 3)
    assert (order, ratios) == (["a", "b", "b", "a", "a", "b"], (1.5, 1.5, 1.5))


def test_pairs_are_measured_where_the_goal_asks(monkeypatch):
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 5)
    works = [
        Work("C", lambda: lambda calls: 2.0),
        Work("ours", lambda: lambda calls: 3.0, Goal(1.6, paired=True)),
        Work("other", lambda: lambda calls: 3.0, Goal(1, floor=("ours",), paired=True)),
        Work("alone", lambda: lambda calls: 3.0, Goal(1, floor=("absent",), paired=True)),
    ]
    rows = comparison.compare("Title", works, 15, ("C",)).rows
    assert [set(row.ratios) for row in rows] == [set(), {1.5}, {1.0}, set()]


@pytest.mark.parametrize("count", [15, 101, 400])
def test_the_interval_holds_the_median(count):
    median, low, high = comparison.median_interval(range(count))
    assert median == (count - 1) / 2
    assert median - low == pytest.approx(high - median, abs=1)
    assert (high - low) / 2 == pytest.approx(1.96 * count**0.5 / 2, abs=1.5)


def test_queued_calls_are_waited_for_in_batches():
    calls = []
    timer = comparison.queued(lambda n: calls.append(n) or float(n), lambda: calls.append("wait"), batch=200)
    assert timer(500) == (200 * 200 * 2 + 100 * 100) / 500
    assert calls == [200, "wait", 200, "wait", 100, "wait"]


def test_a_statement_is_timed_as_often_as_asked():
    found = []
    assert comparison.python("found.append(x)", found=found, x=7)(5) > 0 and found == [7] * 5
    assert comparison.each(lambda calls: 3000.0, 1000)(1) == 3.0


# ---- the GPU suite, without a GPU ----

STAND_IN = """
#include <stdint.h>
#include <string.h>
int cuTensorMapEncodeTiled(
    uint8_t *map, uint32_t type, uint32_t rank, void *address, const uint64_t *dim, const uint64_t *strides,
    const uint32_t *box, const uint32_t *steps, uint32_t i, uint32_t s, uint32_t p, uint32_t o)
{
    uint64_t all[12] = {type, rank, (uint64_t)address, dim[0], dim[4], strides[3], box[4], steps[4], i, s, p, o};
    memcpy(map, all, sizeof all);
    return 0;
}
int cuTensorMapReplaceAddress(uint64_t *map, uint64_t address) { map[0] = address; return address == 13 ? 700 : 0; }
int cuLaunchKernelEx(const uint32_t *config, uint64_t kernel, uint32_t **arguments, void *extra)
{
    *arguments[1] += config[0] * config[3] + kernel;
    return extra || config[6] || *(uint64_t *)(config + 8) != 77;
}
int cuLaunchKernel(uint64_t kernel, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                   uint32_t bytes, uint64_t stream, uint32_t **arguments, void *extra)
{
    *arguments[1] += 2 * (gx * bx + kernel);
    return extra || bytes || gy * gz * by * bz != 1 || stream != 77;
}
"""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A library with the driver's four functions, which do little."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(STAND_IN)
    command = ["gcc", "-shared", "-fPIC", "-o", folder / "libdriver.so", folder / "driver.c"]
    subprocess.run(command, check=True)
    return str(folder / "libdriver.so")


@needs_gcc
def test_the_floor_passes_what_python_gives(stand_in):
    library, memory = floor.Floor(stand_in), floor.map_memory()
    assert ctypes.addressof(memory) % 128 == 0 and len(memory) == 128
    params = cuda_tma.TiledParams(
        data_type=9,
        global_address=1 << 40,
        global_dim=(64, 2, 3, 4, 5),
        global_strides=(128, 256, 768, 3072),
        box_dim=(8, 1, 1, 1, 6),
        element_strides=(1, 1, 1, 1, 7),
        swizzle=3,
        l2_promotion=2,
        oob_fill=1,
    )
    assert library.encode(params, memory)(10) > 0
    assert [*(ctypes.c_uint64 * 12).from_buffer(memory)] == [9, 5, 1 << 40, 64, 5, 3072, 6, 7, 0, 3, 2, 1]
    assert library.replace_address(memory, 1 << 41)(10) > 0
    assert int.from_bytes(memory.raw[:8], "little") == 1 << 41
    with pytest.raises(RuntimeError, match="cuTensorMapReplaceAddress failed in C with error 700"):
        library.replace_address(memory, 13)(10)


@needs_gcc
@pytest.mark.parametrize(("by", "each"), [("cuLaunchKernel", 2 * (32 + 1000)), ("cuLaunchKernelEx", 32 + 1000)])
def test_the_floor_launches_with_arguments_in_memory(stand_in, by, each):
    counter = ctypes.c_uint32(5)
    timer = floor.Floor(stand_in).launch(1000, 77, [floor.map_copy(bytes(128)), counter], by)
    assert timer(3) > 0 and counter.value == 5 + 3 * each


@needs_gcc
def test_the_floor_exports_and_calls_methods(stand_in):
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 4)
    library = floor.Floor(stand_in)
    assert library.method(tensor, "untyped_storage")(100) > 0
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        before = tensor.untyped_storage()._use_count() if hasattr(tensor.untyped_storage(), "_use_count") else None
        assert library.exchange(tensor)(1000) > 0
        assert before is None or tensor.untyped_storage()._use_count() == before


@needs_gcc
def test_a_missing_driver_is_named(stand_in):
    with pytest.raises(RuntimeError, match="no_such_driver.so"):
        floor.Floor("no_such_driver.so")


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no C compiler 'no-such-compiler' .* name another one in CC"):
        floor.compiled.__wrapped__()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({"driver": {"missing": "not found\n..."}, "devices": []}, "there is no NVIDIA driver (not found)"),
        ({"driver": {}, "devices": []}, "the driver shows no GPU"),
        ({"driver": {}, "devices": [{"name": "A100", "has_tma": False}]}, "device 0, A100, has no TMA"),
        ({"driver": {}, "devices": [{"name": "H200", "has_tma": True}]}, ""),
    ],
)
def test_the_gpu_suite_says_why_it_cannot_run(monkeypatch, found, reason):
    monkeypatch.setattr(gpu.info, "facts", lambda: found)
    assert gpu.unavailable().startswith(reason) and bool(gpu.unavailable()) == bool(reason)


def test_the_gpu_machine_names_versions():
    described = gpu.machine()
    assert timing.machine() in described and "cuda-core " in described and "numpy " in described


class FakeScene(scene.Scene):
    """A scene of tensors that are nowhere, for a fake driver; without torch's, a stream or a floor."""

    def __init__(self, device_tensor):
        self.address = 1 << 33
        self._tensor = device_tensor

    def view(self, rank=2, memory=0):
        return self._tensor(scene.SHAPES[rank], address=(1 << 32) + memory * scene.NBYTES)

    @property
    def floor(self):
        raise RuntimeError("no floor")

    @property
    def tensors(self):
        return [self.view(), self.view(2, 1)]


def test_the_rows_of_ours_run(driver, device_tensor, monkeypatch):
    monkeypatch.setattr(many, "COUNT", 4)
    fake = FakeScene(device_tensor)
    monkeypatch.setattr(many, "tensors", lambda fake: [fake.view() for _ in range(4)])
    works = [*create.from_view(fake), *create.from_view_of_rank_5(fake), *create.from_torch(fake)]
    works += [*create.replacements(fake), *many.works(fake)]
    ours = [work for work in works if work.is_ours]
    assert len(ours) == 9
    for work in ours:
        assert work.prepare()(2) > 0, work.name
    with pytest.raises(RuntimeError, match="no floor"):
        next(work for work in works if work.name == create.ENCODE).prepare()


def test_all_libraries_launch_with_the_same_scalars():
    assert [ctypes.sizeof(kind) for kind in launch.SCALAR_TYPES] == [4, 4, 8, 8, 4, 8, 8, 1]
    sizes = [getattr(value, "itemsize", None) for value in launch.SCALARS]
    assert sizes == [4, 4, 8, 8, 4, None, None, None]
    assert launch.struct_scalar(bytes(range(128))).tobytes() == bytes(range(128))


def test_the_chart_shows_rows_and_goals(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [Row("C", (10, 20, 30)), Row("`ours`", (33, 44, 66), Goal(3), True), Row("gone", error="not installed")]
    tables = [Comparison("Some work", rows, ("C",)), Comparison("Nothing", rows[2:], ("C",))]
    for name in ("a.svg", "b.svg"):
        gpu.draw(tables, tmp_path / name)
    text = Path(tmp_path / "a.svg").read_text()
    assert ">Some work</text>" in text and ">ours</text>" in text and "> 44</text>" in text
    assert "gone" not in text and "Nothing" not in text
    assert text == (tmp_path / "b.svg").read_text()


def test_a_comparison_is_written_with_its_chart(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    table = Comparison("Some work", [Row("C", (1.0, 2.0, 4.0))], ("C",))
    monkeypatch.setattr(gpu, "unavailable", lambda: "")
    monkeypatch.setattr(gpu, "machine", lambda: "a GPU")
    monkeypatch.setattr(gpu, "tables", lambda repeats, runs: [table])
    command.main(["gpu", "--output", str(tmp_path)])
    assert "| C | 2 | 1 to 4 | 1 |" in capsys.readouterr().out
    assert (tmp_path / "gpu.md").read_text().startswith("a GPU\n\n## Some work")
    assert json.loads((tmp_path / "gpu.json").read_text())["tables"][0]["rows"][0]["samples_ns"] == [1.0, 2.0, 4.0]
    assert ">Some work</text>" in (tmp_path / "gpu.svg").read_text()


class FakeBench(launch.Bench):
    """Kernels are their names, and the configuration is a word."""

    config = "config"

    def kernel(self, name):
        return name


def test_each_library_is_launched_with_its_arguments(monkeypatch):
    calls = []
    record = lambda *arguments: calls.append(arguments)  # noqa: E731
    stream = type("Stream", (), {"sync": lambda self: calls.append("sync")})()
    bench = FakeBench(type("Scene", (), {"stream": stream}))
    monkeypatch.setattr(launch.cuda_tma, "launch", record)
    monkeypatch.setattr(launch.core, "launch", record)
    monkeypatch.setattr(launch.cuda_tma, "prepare", lambda *given: lambda stream: record(*given, stream))
    works = {work.name: work for work in launch.eight_scalars(bench)}
    for name in (launch.LAUNCH, launch.CUDA_CORE, launch.PREPARED):
        works[name].prepare()(2)
    launched = stream, "config", "eight_scalars", *launch.SCALARS
    prepared = "eight_scalars", "config", *launch.SCALARS, stream
    assert calls == [launched, launched, "sync"] * 2 + [prepared, prepared, "sync"]
    assert works[launch.LAUNCH].goal == Goal(1, floor=(launch.CUDA_CORE,), paired=True)
    assert works[launch.PREPARED].goal.limit_ns(1000) == 1030


# ---- the kernels of the examples, without a GPU ----

COPY = Figure("copy_2d", "4 GiB", "cuMemcpyDtoD", (2.0,), (1.98,), "in turns", 0, 8 << 30, (1980.0,), (0.0,))
WORK = 2 * 8192**3, 6 * 8192**2
PRODUCT = Figure("gemm", "8192 cubed", "torch.matmul", (1.25, 1.5, 1.0), (1.5, 1.5, 1.5), "sustained", *WORK)


def test_figures_as_markdown():
    broken = Figure("transpose", error="element (3, 5) | is wrong")
    powered = Figure("gemm", "small", "cuBLAS", (1.0,), (1.0,), "burst", 10**12, 1, (1455.0,), (698.4,))
    lines = figures_markdown(COPY, broken, PRODUCT, powered)
    assert lines[0] == "## Title" and lines[-1] == "A note."
    assert lines[4:8] == [
        "| `copy_2d` | 4 GiB | in turns | 4.29 | 4.34 | TB/s | cuMemcpyDtoD | 99.0% | 99.0% to 99.0% |  |",
        "| `transpose` | element (3, 5) \\| is wrong |  |  |  |  |  |  |  |  |",
        "| `gemm` | 8192 cubed | sustained | 880 | 733 | TFLOP/s | torch.matmul | 120.0% | 100.0% to 150.0% |  |",
        "| `gemm` | small | burst | 1000 | 1000 | TFLOP/s | cuBLAS | 100.0% | 100.0% to 100.0% | 1455 MHz, 698 W |",
    ]


def figures_markdown(*figures):
    return command.markdown(Figures("Title", figures, ("A note.",))).splitlines()


def test_processes_come_together_by_case_rival_and_regime():
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
    return [name for _, names in kernels.TABLES.values() for name in names]


@pytest.mark.parametrize("name", timed_examples())
def test_each_timed_example_gives_cases_of_sizes(name):
    module = kernels.example(name)
    assert inspect.isgeneratorfunction(module.cases) and len(inspect.signature(module.cases).parameters) == 1
    assert module.SMALL and module.LARGE and not [size for size in module.SMALL if size in module.LARGE]


def test_every_example_with_cases_is_timed():
    paths = kernels.EXAMPLES.glob("[!_]*.py")
    assert {path.stem for path in paths if "\ndef cases(" in path.read_text()} == set(timed_examples())


class Example:
    """A copy that goes wrong in launch `wrong`, if that is the last one."""

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
def test_what_the_timed_launches_left_is_checked(monkeypatch, wrong, cases):
    """A figure is given only after the example has looked at what the last launch left."""
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
    figures = iter([[COPY, PRODUCT], [COPY], [Figure("gemm", error="gone")]])
    monkeypatch.setattr(kernels, "in_a_process", lambda names: next(figures))
    moving, multiplying = kernels.tables(15, 3)
    assert [f.ours_ms for f in moving.figures] == [(2.0, 2.0)]
    assert [(f.kernel, f.error) for f in multiplying.figures] == [("gemm", ""), ("gemm", "gone")]
    assert "written once" in moving.notes[0] and "of 3 processes" in moving.notes[0]
    assert "after half a second" in multiplying.notes[0] and "is left out" in multiplying.notes[0]


def test_a_process_that_ends_early_says_so(monkeypatch):
    done = type("Done", (), {"stdout": json.dumps(dataclasses.asdict(COPY)), "stderr": "a\nkilled", "returncode": 3})
    monkeypatch.setattr(kernels.subprocess, "run", lambda command, **more: done)
    assert kernels.in_a_process(["copy_2d", "gemm"]) == [COPY, Figure("gemm", error="exit status 3: killed")]

    def late(command, **more):
        raise subprocess.TimeoutExpired(command, 1, json.dumps(dataclasses.asdict(COPY)).encode())

    monkeypatch.setattr(kernels.subprocess, "run", late)
    assert kernels.in_a_process(["copy_2d", "gemm"])[1].error == f"no end within {kernels.PER_RUN_S} s"


def test_a_process_gives_a_line_for_each_figure():
    """Where there is no GPU, every example says why."""
    pytest.importorskip("torch")
    (figure,) = kernels.in_a_process(["copy_2d"])
    assert figure.kernel == "copy_2d" and (figure.error or figure.ours_ms)


class FakeGpu:
    """A clock that runs take time on, in the place of torch's events."""

    def __init__(self, monkeypatch):
        torch = pytest.importorskip("torch")
        self.now, self.synchronized, self.slept = 0.0, 0, []
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
    assert gpu.synchronized == 1


def test_sustained_work_is_counted_after_half_a_second(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    hot = []

    def throttled():  # it is slower from then on
        hot.append(gpu.now)
        gpu.now += 6.0 if gpu.now < 500 else 9.0

    assert regimes.sustained([throttled, gpu.run("b", 4.0)]) == [9.0, 4.0]
    assert len(hot) == 4 + 50 + 100


def test_a_burst_is_after_a_pause(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    assert regimes.burst([gpu.run("a", 2.0), gpu.run("b", 3.0)]) == [2.0, 3.0]
    eights = ["".join(gpu.order[at : at + 8]) for at in range(0, len(gpu.order), 8)]
    assert eights == ["a" * 8, "b" * 8, "b" * 8, "a" * 8, "a" * 8, "b" * 8]
    assert gpu.slept == [0.25] * 6


def test_clock_and_power_are_read_meanwhile(monkeypatch):
    values = {"nvmlDeviceGetClockInfo": [1980, 1455, 1450], "nvmlDeviceGetPowerUsage": [400_000, 698_400, 690_000]}

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
    assert (watch.clock_mhz, watch.power_w) == (1455, 698.4)


def test_without_nvml_nothing_is_read(monkeypatch):
    monkeypatch.setattr(regimes.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with regimes.Watch(period_s=0.0001) as watch:
        pass
    assert (watch.clock_mhz, watch.power_w) == (0, 0)


def test_the_kernels_say_why_they_cannot_run(monkeypatch):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: None)
    assert kernels.unavailable().startswith("torch is not installed")


def test_the_roofline_has_measured_ceilings(tmp_path):
    pytest.importorskip("matplotlib")
    broken = Figure("transpose", error="is wrong")
    beside = dataclasses.replace(COPY, rival="torch.Tensor.copy_")
    fast = dataclasses.replace(PRODUCT, regime="burst", rival_ms=(0.5, 0.5, 0.5))
    tables = [Figures("Moving", [COPY, beside, broken]), Figures("Multiplying", [PRODUCT, fast])]
    for name in ("a.svg", "b.svg"):
        kernels.draw(tables, tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert ">cuMemcpyDtoD, 4.34 TB/s</text>" in text and ">torch.matmul, 733 TFLOP/s</text>" in text
    assert text.count(">copy_2d: 4 GiB</text>") == 1 and " 4.34 torch.Tensor.copy_</text>" in text
    assert "gemm: 8192 cubed" in text and "is wrong" not in text
    assert text == (tmp_path / "b.svg").read_text()


def test_the_roofline_without_a_ceiling(tmp_path):
    pytest.importorskip("matplotlib")
    assert roofline.best([COPY], "torch.matmul") == 0
    kernels.draw([Figures("Nothing", [])], tmp_path / "a.svg")
    assert "TFLOP/s</text>" in (tmp_path / "a.svg").read_text()


# ---- the run-time compiler ----


def test_the_compiler_is_timed_with_each_header(monkeypatch, tmp_path):
    (tmp_path / "cuda").mkdir()
    for name in ("ptx", "barrier"):
        (tmp_path / "cuda" / name).write_text("#define CCCL_VERSION 3000001\n")
    (tmp_path / "cuda" / "version").write_text("#  define CCCL_VERSION 3000001\n")
    monkeypatch.setattr(nvrtc, "cccl", lambda: tmp_path)
    assert nvrtc.unavailable() == "" and nvrtc.machine().endswith("CCCL 3.0.1")
    cases = nvrtc.cases()
    assert [case.name.partition("`")[2] for case in cases[1:]] == [
        "<cuda_tma/tma.cuh>`",
        "<cuda/ptx>`",
        "<cuda/barrier>`",
    ]
    assert [case.run() for case in cases] == [None] * 4
    (tmp_path / "cuda" / "ptx").write_text("#error not this one\n")
    with pytest.raises(RuntimeError, match="not this one"):
        cases[2].run()


def test_without_cccl_there_are_our_rows(monkeypatch):
    monkeypatch.setattr(nvrtc, "cccl", lambda: None)
    monkeypatch.setattr(nvrtc, "measure", lambda cases, repeats: [timing.Timing(c.name, (repeats,) * 2) for c in cases])
    (table,) = nvrtc.tables(15, 3)
    assert [t.median_us for t in table.timings] == [nvrtc.MOST_REPEATS] * 2 and table.unit == "ms"
    assert "pip install nvidia-cuda-cccl" in table.notes[0] and nvrtc.machine().endswith("no CCCL found")
