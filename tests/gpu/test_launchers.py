"""Tests of docs/launchers.md: each snippet runs in a separate process, if its library is installed."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

PAGE = Path(__file__).parents[2] / "docs" / "launchers.md"
LIBRARIES = {"CuPy": "cupy", "numba": "numba", "Triton": "triton", "graphs and nodes": "cuda.core.graph"}


def snippets():
    """Return the code snippets of the page by their headings. Each snippet begins with the code before the first
    heading."""
    common, *sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (first,) = blocks(common)
    found = {section.splitlines()[0]: blocks(section) for section in sections}
    return first, {heading: "\n".join(own) for heading, own in found.items() if own}


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


COMMON, SNIPPETS = snippets()


def run(source, folder):
    # Triton reads the source of kernels from a file.
    file = folder / "snippet.py"
    file.write_text(source)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("heading", SNIPPETS)
def test_a_snippet_runs(heading, tmp_path):
    for name, module in LIBRARIES.items():
        if name in heading and find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    if "numba" in heading:
        require_numba_compiles(tmp_path)
    done = run(f"{COMMON}\n{SNIPPETS[heading]}\nprint('fine')\n", tmp_path)
    assert done.stdout.strip().endswith("fine"), done.stderr


EMPTY = """
from numba import cuda

@cuda.jit
def empty():
    pass

empty[1, 1]()
cuda.synchronize()
print("compiles")
"""


def require_numba_compiles(folder):
    """Skip the test if numba-cuda cannot compile an empty kernel, because it uses np.row_stack, which NumPy 2.5 lacks.
    A test of a snippet shows any other failure of numba-cuda.
    """
    if not hasattr(np, "row_stack"):
        done = run(EMPTY, folder)
        if done.stdout.strip() != "compiles" and "module 'numpy' has no attribute 'row_stack'" in done.stderr:
            pytest.skip("this numba-cuda does not compile with this NumPy: it needs np.row_stack")


NAIVE = """
from cuda.bindings import driver

PUT = r'''
#include <cuda_tma/tma.cuh>
extern "C" __global__ void put(const __grid_constant__ cuda_tma::TensorMap map, unsigned long long* out) {
    for (int i = 0; i < 16; i++) out[i] = map.opaque[i];
}'''
put = cuda_tma.compile(PUT, "put")
words = torch.zeros(16, dtype=torch.uint64, device="cuda")
torch.cuda.synchronize()


def arrives(block, misaligned_by):
    memory = ctypes.create_string_buffer(len(block) + 256)
    at = -ctypes.addressof(memory) % 128 + misaligned_by
    ctypes.memmove(ctypes.addressof(memory) + at, block, len(block))
    size = ctypes.c_size_t(len(block))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(memory) + at, 2, ctypes.addressof(size), 0)
    (error,) = driver.cuLaunchKernel(
        driver.CUfunction(int(put.handle)), 1, 1, 1, 1, 1, 1, 0, int(stream.handle), 0, ctypes.addressof(extra))
    stream.sync()
    return int(error), words.cpu().numpy().tobytes()


step = cuda_tma.prepare(put, core.LaunchConfig(grid=1, block=1), descriptor, words)
for misaligned_by in (0, 8, 16, 64):  # the place of the block does not matter
    assert arrives(step.parameter_block, misaligned_by) == (0, bytes(descriptor)), misaligned_by
print("offsets", [each.offset_bytes for each in cuda_tma.parameters_of(put)], flush=True)
struct = bytes(descriptor) + words.data_ptr().to_bytes(8, "little")
print("a struct that begins with the map:", end=" ", flush=True)
try:
    print(arrives(struct.ljust(len(step.parameter_block), bytes(1)), 0)[1] == bytes(descriptor), flush=True)
except Exception as error:
    print(str(error).splitlines()[0], flush=True)
"""


def test_place_of_a_map_in_one_block(tmp_path, publish):
    """In a block of parameters, the tensor map is at the driver's offset for any address of the block. The offset in a
    struct would differ."""
    done = run(COMMON + NAIVE, tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0] == "offsets [112, 240]", done.stderr
    assert lines[1].startswith("a struct that begins with the map: ") and not lines[1].endswith("True"), done.stderr
    publish(f"launchers, one parameter block: {'; '.join(lines)}")


SURVIVES = """
import gc, weakref
keeps = cuda_tma.create_tensor_map(torch.rand(512, 1024, device="cuda"), box_dim=(8, 64))
torch.cuda.synchronize()
used = torch.cuda.memory_allocated()
theirs = keeps.to_cuda_core()
keeps.replace_address(keeps.params.global_address)  # releases the tensor itself
del keeps
gc.collect()
assert torch.cuda.memory_allocated() == used
del theirs
gc.collect()
assert torch.cuda.memory_allocated() == used - 512 * 1024 * 4
half = torch.rand(64, 64, device="cuda").to(torch.float8_e4m3fn)
for tensor, options in [
    (half, cuda_tma.TensorMapOptions((8, 64), swizzle="64B")),
    (torch.rand(2, 8, 8, 64, device="cuda").bfloat16(), cuda_tma.TensorMapIm2colOptions(
        (-1, -1), (-1, -1), pixels_per_column=32, channels_per_pixel=64, swizzle="128B")),
]:
    ours = cuda_tma.create_tensor_map(tensor, options)
    assert cuda_tma.TensorMapDescriptor.from_bytes(ours.to_cuda_core(), tensor) == ours
print("fine")
"""


def test_cuda_cores_descriptor_keeps_the_tensor(tmp_path):
    done = run(COMMON + SURVIVES, tmp_path)
    assert done.stdout.strip() == "fine", done.stderr
