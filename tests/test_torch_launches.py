"""Tests of the launches of an operator on a GPU, with a fake driver and a fake device."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma
from cuda_tma import simulate
from tests.support import torch_kernels as kernels

torch = pytest.importorskip("torch")

from cuda_tma.torch import _launches  # noqa: E402
from cuda_tma.torch._launches import CudaLaunch  # noqa: E402

# The method get_device() returns -1 for a CPU tensor.
HERE = -1


@pytest.fixture
def launched(monkeypatch):
    """Return a list of the launches as (stream, config, kernel's name, arguments). CPU tensors replace GPU tensors."""
    found = []
    gpu = simulate.Device()
    monkeypatch.setattr(torch.cuda, "current_device", lambda: HERE)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: SimpleNamespace(index=index))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0, raising=False)
    monkeypatch.setattr(_launches, "_streams", {})
    monkeypatch.setattr(
        cuda_tma, "launch", lambda stream, config, kernel, *rest: found.append((stream, config, kernel, rest))
    )
    monkeypatch.setattr(cuda_tma, "compile", lambda *given: gpu.compile(*given))
    monkeypatch.setattr(cuda_tma, "Device", lambda index: SimpleNamespace(set_current=lambda: None))
    return found


def test_a_launch(launched):
    launch, x, y = CudaLaunch("a::b"), torch.rand(32, 32), torch.empty(32, 32)
    for config in ({"grid": 1, "block": 32}, lambda: {"grid": 2, "block": 32}):
        launch(config, kernels.scale, x, y, 2.0)
    (stream, config, kernel, arguments), (again, made, same, _) = launched
    assert (config, made) == ({"grid": 1, "block": 32}, {"grid": 2, "block": 32})
    assert stream is again and stream.index == HERE
    assert kernel is same and kernel.name == "scale"
    assert [*map(id, arguments[:2])] == [id(x), id(y)] and arguments[2] == 2.0
    assert launch.parameters_of(kernels.scale)["x"].map_type.tile_dim == (32, 32)


def test_a_pointer_takes_contiguous_tensors(launched):
    launch, total = CudaLaunch("a::b"), torch.zeros(40)
    with pytest.raises(RuntimeError, match=r"a::b: argument 'x' has strides \(1, 5\)"):
        launch({}, kernels.add_rows, torch.rand(40, 5).T, total, total, 5, 40, False)
    assert launched == []


def test_a_kernel_with_cpu_tensors_only(launched, monkeypatch):
    """On a GPU, an operator's function may pass tensors to its kernels that the function created without a device."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", lambda index: nullcontext())
    launch = CudaLaunch("a::b")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^a::b: argument 'x' is on cpu, but the kernel runs on cuda:0. Remedy"):
            launch({"grid": 1, "block": 32}, kernels.scale, torch.rand(32, 32), torch.empty(32, 32), 2.0)
    assert launched == []


def test_a_refused_launch_is_explained(launched, monkeypatch):
    launch, y = CudaLaunch("a::b"), torch.empty(32, 32)

    def refuse(*_):
        raise cuda_tma.TensorMapError("argument 1 of kernel scale is wrong")

    monkeypatch.setattr(cuda_tma, "launch", refuse)
    with pytest.raises(RuntimeError, match="^a::b: argument 1 of kernel scale is wrong$"):
        launch({}, kernels.scale, torch.rand(32, 32), y, 2.0)
    with pytest.raises(RuntimeError, match="^a::b: argument 'x' has dtype torch.float64"):
        launch({}, kernels.scale, torch.rand(32, 32, dtype=torch.float64), y, 2.0)
    with pytest.raises(RuntimeError, match="^a::b: kernel scale takes 3 arguments, and 1 was given$"):
        launch({}, kernels.scale, torch.rand(32, 32))
    with pytest.raises(RuntimeError, match="^a::b: kernel add_rows takes 6 arguments, and 1 was given$"):
        launch({}, kernels.add_rows, torch.rand(32, 32))


SUITE = """
import torch
from cuda_tma.torch import like, operator
from tests.support import torch_kernels as kernels

def scaled(kernel):
    config = lambda x: {"grid": (x.shape[1] // 32, x.shape[0] // 32), "block": 32}
    x = torch.rand(32, 64, device="cuda")
    return x, operator("suite::scale", kernel, outputs={"y": like("x")}, config=config)(x, 2.0)

def test_right():
    x, y = scaled(kernels.scale)
    assert torch.equal(y, 2 * x) and y.device.type == "cuda"

def test_racing():
    scaled(kernels.racing_scale)
"""


def test_the_plugin_judges_operators_of_a_suite(tmp_path):
    """Under the pytest plugin, torch operators use the plugin's simulated GPU, also for CUDA tensors."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_cuda_tma", "--cuda-tma", "-rA", "-q", "test_suite.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "PASSED test_suite.py::test_right" in done.stdout and "FAILED test_suite.py::test_racing" in done.stdout
    assert "[missing-proxy-fence]" in done.stdout and "2 launches judged" in done.stdout
