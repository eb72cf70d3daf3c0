"""Tests of compile() on a GPU. Compiled kernels and kernels from disk run, and the driver reports their attributes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cuda import core

import cuda_tma
from cuda_tma._compile.nvrtc import run

from .launch_kernels import COPY_TILES

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")

SOURCE = (
    COPY_TILES
    + """
#include <cuda_tma/dynamic_shared.cuh>
struct Shared { unsigned bytes_before; alignas(1024) unsigned char bytes[100 * 1024]; };

template <int Factor> __global__ void scale(float* out, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] *= Factor * MORE;
}
extern "C" __global__ void fill(int value, int* out) { *out = value; }
__global__ void twice(int* out) { *out *= 2; }
__global__ void twice(float* out) { *out *= 2; }

// All of its dynamic shared memory exists, at the expected address.
extern "C" __global__ void large(unsigned* out) {
    __shared__ volatile unsigned char fixed[96];
    Shared& shared = dynamic_shared<Shared>();
    fixed[threadIdx.x % 96] = 0;
    for (int i = threadIdx.x; i < sizeof(shared.bytes); i += blockDim.x) shared.bytes[i] = i % 251;
    __syncthreads();
    unsigned sum = 0;
    for (int i = threadIdx.x; i < sizeof(shared.bytes); i += blockDim.x) sum += shared.bytes[i];
    atomicAdd(out, sum);
    if (threadIdx.x == 0) out[1] = smem_address(&shared) % 1024 + fixed[0];
}
"""
)
DEFINES = {"MORE": 2, "TYPE": "FLOAT32", "ROWS": 16, "COLUMNS": 64, "SWIZZLE": "SWIZZLE_NONE"}
CONFIG = core.LaunchConfig(grid=1, block=128)


@pytest.fixture(scope="module")
def compiled(device, tmp_path_factory):
    """Return a function that compiles a kernel of the source, with a disk cache for the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_TMA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield lambda name, **given: cuda_tma.compile(SOURCE, name, defines=DEFINES, **given)


def launched(stream, kernel, *arguments, config=CONFIG):
    torch.cuda.synchronize()
    cuda_tma.launch(stream, config, kernel, *arguments)
    stream.sync()


def test_a_kernel_runs_compiled_and_from_disk(compiled, stream, monkeypatch):
    out = torch.ones(100, device="cuda")
    launched(stream, compiled("scale<3>"), out, 100)
    monkeypatch.setattr("cuda_tma._compile.kept.run", lambda asked: pytest.fail(f"{asked.name} was compiled"))
    launched(stream, compiled("scale<3>"), out, 100)
    assert torch.equal(out, torch.full_like(out, 36))


def test_one_of_several_of_a_name(compiled, stream):
    out = torch.tensor([1.5], device="cuda")
    launched(stream, compiled("static_cast<void (*)(float*)>(twice)"), out)
    assert out.item() == 3


def test_an_extern_c_kernel_has_its_types(compiled, stream):
    kernel, out = compiled("fill"), torch.zeros(1, dtype=torch.int32, device="cuda")
    with pytest.raises(TypeError, match=r"argument 0 \(value\) of kernel fill: the parameter takes an integer"):
        cuda_tma.launch(stream, CONFIG, kernel, 1.5, out)
    launched(stream, kernel, 7, out)
    assert out.item() == 7


def test_dynamic_shared_memory_is_the_kernels_own(compiled, stream):
    kernel, out = compiled("large"), torch.zeros(2, dtype=torch.int32, device="cuda")
    parameters = cuda_tma.parameters_of(kernel)
    assert parameters.dynamic_shared_bytes == 101 * 1024
    # The dynamic part starts at a multiple of 1024 bytes.
    assert 96 <= parameters.static_shared_bytes <= 1024
    assert [(p.name, p.type, p.size_bytes) for p in parameters] == [("out", "pointer", 8)]
    launched(stream, kernel, out)
    assert out.tolist() == [sum(i % 251 for i in range(100 * 1024)), 0]


def test_a_typed_map_has_the_size_in_the_kernel(compiled, stream):
    kernel = compiled("copy", constants={"rows": "ROWS"})
    parameters = cuda_tma.parameters_of(kernel)
    assert parameters["from"].map_type.box_dim == (parameters.constants["rows"], 64) == (16, 64)
    source, target = torch.rand(100, 200, device="cuda"), torch.zeros(100, 200, device="cuda")
    launched(stream, kernel, source, target, config=core.LaunchConfig(grid=(4, 7), block=32))
    assert torch.equal(source, target)


def test_memory_is_the_kernels_while_it_lives(compiled, stream):
    """Only the kernel object keeps the kernel's library loaded."""
    kernels = [compiled("fill", options=[f"-DNOTHING={i}"]) for i in range(20)]
    out = torch.zeros(20, dtype=torch.int32, device="cuda")
    for index, kernel in enumerate(kernels):
        launched(stream, kernel, index + 1, out[index : index + 1])
    assert out.tolist() == [*range(1, 21)]


PROCESS = """
import sys, cuda_tma
from cuda_tma._compile import kept
if sys.argv[1] == "later":
    kept.run = lambda asked: sys.exit("it was compiled")
device = cuda_tma.Device()
device.set_current()
kernel = cuda_tma.compile(sys.stdin.read(), "fill", defines=eval(sys.argv[2]))
print(len(cuda_tma.parameters_of(kernel)))
"""


def test_another_process_takes_it_from_disk(tmp_path):
    environment = {**os.environ, "CUDA_TMA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for turn in ("first", "later"):
        command = [sys.executable, "-c", PROCESS, turn, repr(DEFINES)]
        ran = subprocess.run(command, env=environment, input=SOURCE, capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr


def test_nvrtc_gets_the_devices_own_architecture(compiled, device, monkeypatch):
    targets = []
    monkeypatch.setattr("cuda_tma._compile_kernel.run", lambda asked: targets.append(asked.target) or run(asked))
    compiled("fill", cache=False)
    assert targets == [f"sm_{device.arch}a"]


def test_the_program_of_the_readme_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", str(tmp_path))
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    on_simulator, on_gpu = re.findall(r"```python(?: gpu)?\n(.*?)```", readme, re.DOTALL)
    names = {}
    exec(on_simulator, names)
    exec(on_gpu, names)
    assert torch.equal(names["out"], 2 * names["x"]) and names["out"].is_cuda
    # Only the launch on the GPU stores a kernel in the cache.
    assert len([*tmp_path.glob("*.kernel")]) == 1
