"""A program of cuda.bindings with a sum through shared memory whose last steps lack a barrier."""

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void sum(const float* in, float* out) {
    __shared__ float part[128];
    part[threadIdx.x] = in[threadIdx.x];
    for (int by = 64; by > 0; by /= 2) {
        __syncthreads();
        if (threadIdx.x < by)
            part[threadIdx.x] += part[threadIdx.x + by];
    }
    if (threadIdx.x == 64)
        *out = part[0];  // wrong
}
"""


def require(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


require(driver.cuInit(0))
device = require(driver.cuDeviceGet(0))
require(driver.cuCtxSetCurrent(require(driver.cuDevicePrimaryCtxRetain(device))))
program = require(nvrtc.nvrtcCreateProgram(SOURCE, b"sum.cu", 0, [], []))
require(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90"]))
image = bytes(require(nvrtc.nvrtcGetCUBINSize(program)))
require(nvrtc.nvrtcGetCUBIN(program, image))
function = require(driver.cuModuleGetFunction(require(driver.cuModuleLoadData(image)), b"sum"))
values = np.ones(128, np.float32)
given, out = require(driver.cuMemAlloc(512)), require(driver.cuMemAlloc(4))
require(driver.cuMemcpyHtoD(given, values.ctypes.data, 512))
arguments = np.array([int(given), int(out)], np.uint64)
places = np.array([arguments[at:].ctypes.data for at in range(2)], np.uint64)
require(driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, places.ctypes.data, 0))
require(driver.cuCtxSynchronize())
