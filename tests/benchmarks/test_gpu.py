"""Tests of the GPU suite of the benchmarks, on a machine without a GPU."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import cuda_tma
from benchmarks import __main__ as command
from benchmarks import gpu, host
from benchmarks.comparison import Comparison, Goal, Row
from benchmarks.gpu import create, floor, launch, launch_tensors, many, scene
from cuda_tma._compile.nvrtc import compile_source

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
int cuCtxGetCurrent(uint64_t *context) { *context = 7; return 0; }
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
    """Return a library with five of the driver's functions, which have no effect."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(STAND_IN)
    command = ["gcc", "-shared", "-fPIC", "-o", folder / "libdriver.so", folder / "driver.c"]
    subprocess.run(command, check=True)
    return str(folder / "libdriver.so")


@needs_gcc
def test_the_floor_passes_pythons_values(stand_in):
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
    assert library.current_context()(10) > 0


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
        counter = ctypes.c_uint32(5)
        params = cuda_tma.TiledParams(
            data_type=7, global_address=1 << 40, global_dim=(64,) * 5, global_strides=(256,) * 4, box_dim=(8,) * 5,
            element_strides=(1,) * 5,
        )  # fmt: skip
        assert library.launch_tensors(1000, 77, [tensor], params, counter)(3) > 0
        assert counter.value == 5 + 3 * 2 * (32 + 1000)
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
def test_the_gpu_suite_gives_the_reason_that_it_cannot_run(monkeypatch, found, reason):
    monkeypatch.setattr(gpu.info, "facts", lambda: found)
    assert gpu.unavailable().startswith(reason) and bool(gpu.unavailable()) == bool(reason)


def test_the_gpu_machine_names_versions():
    described = gpu.machine()
    assert host.machine() in described and "cuda-core " in described and "numpy " in described


class FakeScene(scene.Scene):
    """A stand-in for the setup of the GPU benchmarks, with fake tensors for a fake driver."""

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
    """A stand-in for a benchmark, in which strings replace the kernels and the configuration."""

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
    assert works[launch.PREPARED].goal.limit_ns(1000) == 1050


class FakeTensors(launch_tensors.Bench):
    tensors, kernel, config = ("a", "b", "c"), "kernel", "config"


def test_launches_of_tensors_get_the_same_arguments(monkeypatch):
    calls = []
    stream = type("Stream", (), {"sync": lambda self: None})()
    options = cuda_tma.TensorMapOptions(box_dim=scene.BOXES[2])
    fake = type("Scene", (), {"stream": stream, "options": lambda self: options})()
    monkeypatch.setattr(launch_tensors.cuda_tma, "launch", lambda *given: calls.append(given))
    monkeypatch.setattr(launch_tensors.cuda_tma, "create_tensor_map", lambda tensor, given: (tensor, given))
    works = {work.name: work for work in launch_tensors.three_tensors(FakeTensors(fake))}
    assert [*works][:3] == [launch_tensors.FLOOR, launch_tensors.SEQUENCE, launch_tensors.LAUNCH]
    assert works[launch_tensors.LAUNCH].goal.limit_ns(1000) == 1150
    for name in (launch_tensors.LAUNCH, "cuda_tma.create_tensor_map, then launch"):
        works[name].prepare()(1)
    maps = [(name, options) for name in "abc"]
    assert calls == [(stream, "config", "kernel", "a", "b", "c", 7), (stream, "config", "kernel", *maps, 7)]


def test_the_kernel_of_three_tensors_has_the_boxes_of_the_others():
    compiled = compile_source(launch_tensors.SOURCE, "three_maps", target="compute_90a")
    *maps, count = compiled.types
    assert [each.options for each in maps] == [cuda_tma.TensorMapOptions(scene.BOXES[2], data_type="float32")] * 3
    assert count == "integer"


def test_a_sum_of_timers():
    assert launch_tensors.together([lambda calls: calls, lambda calls: 10 * calls])(3) == 33
