"""Tests of scripts for cuda.core and cuda.bindings. A right script has no error, and a wrong script has an error at its
marked line."""

from __future__ import annotations

import pytest

CORE = '''
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
template <typename T> __global__ void reverse(const T* in, T* out) {
    __shared__ T tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    BARRIER
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
program = Program(SOURCE, code_type="c++", options=options)
kernel = program.compile(TARGET, name_expressions=("reverse<float>",)).get_kernel("reverse<float>")
values, result = np.random.default_rng(0).random(64, np.float32), np.zeros(64, np.float32)
given, out = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
driver.cuMemcpyHtoD(int(given.handle), values.ctypes.data, 256)
launch(stream, LaunchConfig(grid=1, block=64), kernel, given, out)
stream.sync()
driver.cuMemcpyDtoH(result.ctypes.data, int(out.handle), 256)
assert IS_WRONG or (result == values[::-1]).all()
given.close(stream)
out.close(stream)
'''

BINDINGS = '''
import ctypes
import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
typedef struct __align__(64) { char opaque[128]; } TensorMap;
extern "C" __global__ void copy(const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float tile[32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], BYTES;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {0}], [%2];"
                     :: "r"(to), "l"(&map), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"
                 :: "r"(at) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
"""


def require(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


require(driver.cuInit(0))
device = require(driver.cuDeviceGet(0))
require(driver.cuCtxSetCurrent(require(driver.cuDevicePrimaryCtxRetain(device))))
program = require(nvrtc.nvrtcCreateProgram(SOURCE, b"copy.cu", 0, [], []))
require(nvrtc.nvrtcCompileProgram(program, 2, [b"--gpu-architecture", b"sm_90a"]))
image = bytes(require(nvrtc.nvrtcGetCUBINSize(program)))
require(nvrtc.nvrtcGetCUBIN(program, image))
function = require(driver.cuModuleGetFunction(require(driver.cuModuleLoadData(image)), b"copy"))
values, result = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
given, out = (require(driver.cuMemAlloc(128)) for _ in range(2))
require(driver.cuMemcpyHtoD(given, values.ctypes.data, 128))
number = driver.cuuint32_t
map = require(driver.cuTensorMapEncodeTiled(
    driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, int(given), [driver.cuuint64_t(32)], [],
    [number(32)], [number(1)], driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
    driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE, driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
    driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
config = driver.CUlaunchConfig()
config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
config.blockDimX = 32
require(driver.cuLaunchKernelEx(config, function, ((map, out), (None, None)), 0))
require(driver.cuCtxSynchronize())
require(driver.cuMemcpyDtoH(result.ctypes.data, out, 128))
assert IS_WRONG or (result == values).all()
require(driver.cuMemFree(given))
require(driver.cuMemFree(out))
'''


def line_of(script: str, text: str) -> int:
    return next(number for number, line in enumerate(script.splitlines(), 1) if text in line)


def core(target: str, barrier: str) -> str:
    script = CORE.replace("BARRIER", barrier).replace("TARGET", repr(target))
    return script.replace("IS_WRONG", str(not barrier))


def bindings(count: int) -> str:
    return BINDINGS.replace("BYTES", str(count)).replace("IS_WRONG", str(count != 128))


@pytest.mark.parametrize("target", ["cubin", "ptx"])
def test_a_right_script_of_cuda_core(run, target):
    ran = run(core(target, "__syncthreads();"), "")
    assert (ran.status, ran.kinds, ran.err) == (0, [], "")
    (launched,) = ran.launches
    assert launched["kernel"] == "reverse<...>" and launched["launched_at"]["line"] == line_of(CORE, "launch(stream,")


def test_a_missing_barrier_of_cuda_core_has_its_line(run):
    script = core("cubin", "")
    ran = run(script, "")
    assert (ran.status, ran.kinds) == (1, ["race"]), ran.err
    place = ran.launches[0]["findings"][0]["source"]
    assert (place["file"], place["line"]) == ("script.py", line_of(script, "tile[63 - threadIdx.x]"))


def test_a_right_script_of_cuda_bindings(run):
    ran = run(bindings(128), "")
    assert (ran.status, ran.kinds, ran.err) == (0, [], "")


def test_a_wrong_byte_count_of_cuda_bindings_has_its_line(run):
    script = bindings(256)
    ran = run(script, "")
    assert ran.status == 1 and set(ran.kinds) == {"transaction-count"}, ran.kinds
    (found,) = ran.launches[0]["findings"]
    place = found["source"]
    lines = script.splitlines()
    assert place["file"] == "script.py" and "mbarrier" in lines[place["line"] - 1] + lines[place["line"]], place


def test_a_module_that_is_looked_for_before_its_import_has_its_adapter(run):
    ran = run(
        """
import importlib.util, sys
for _ in range(2):
    assert importlib.util.find_spec("cuda.pathfinder") is not None
assert "cuda.pathfinder" not in sys.modules
from cuda import pathfinder
assert pathfinder.load_nvidia_dynamic_lib.__module__ == "cuda_tma_nvrtc"
""",
        "",
    )
    assert ran.err == "cuda-tma: note: the program launched no kernel\n"
