"""Tests of scripts with tensor maps of cuda.core, unchanged and with one changed import.

One script loads a tile, and one script changes an address. The scripts resemble NVIDIA's examples of tensor maps;
evaluation/run_core_scripts.py runs the examples themselves.
"""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "evaluation"))

import run_core_scripts

pytest.importorskip("cupy")

LOAD = """
import cupy
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core.utils import StridedMemoryView

device = Device()
device.set_current()
source = r'''
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void load(const __grid_constant__ Map map, float* out, int count) {
    __shared__ alignas(128) float tile[128];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned to = __cvta_generic_to_shared(tile), full = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(full));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(full));
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2}], [%3];" :: "r"(to), "l"(&map), "r"(int(blockIdx.x) * 128), "r"(full));
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; wait: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra wait; }" :: "r"(full));
    int at = blockIdx.x * 128 + threadIdx.x;
    if (at < count) out[at] = tile[threadIdx.x];
}'''
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("load")
config = LaunchConfig(grid=8, block=128)


def loaded(tensor_map):
    out = cupy.zeros(1024, dtype=cupy.float32)
    device.sync()
    launch(device.default_stream, config, kernel, tensor_map, out.data.ptr, np.int32(1024))
    device.sync()
    return out


x = cupy.arange(1024, dtype=cupy.float32)
tensor_map = StridedMemoryView.from_any_interface(x, stream_ptr=-1).as_tensor_map(box_dim=(128,))
assert cupy.array_equal(loaded(tensor_map), x)
"""
REPLACE = """
other = cupy.full(1024, 42.0, dtype=cupy.float32)
device.sync()
tensor_map.replace_address(other)
assert cupy.array_equal(loaded(tensor_map), other)
"""
SCRIPTS = {"load": LOAD, "replace_address": LOAD + REPLACE}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("changes", [False, True], ids=["cuda.core", "cuda_tma"])
def test_a_script_runs_with_either(name, changes):
    script = SCRIPTS[name] + "print(type(tensor_map).__module__)\n"
    if changes:
        script = run_core_scripts.with_import_changed(script)
        assert "from cuda.core" not in script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split(".")[0].strip() == ("cuda_tma" if changes else "cuda"), done.stderr
