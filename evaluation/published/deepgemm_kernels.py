"""Launches of DeepGEMM's kernels for sm_90: ``python deepgemm_kernels.py CLONE CUTLASS CASE``.

DeepGEMM's host code needs a build with torch for CUDA. This script compiles a kernel with the template arguments of
DeepGEMM's rules, encodes the tensor maps with the same arguments, and compares the results with NumPy.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np
from cuda.bindings import driver
from cuda.core import Device

CLONE, CUTLASS, CASE = sys.argv[1:4]
FP8, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
SHARED = 232448
TYPES = {FP8: "UINT8", BF16: "BFLOAT16", np.float32: "FLOAT32"}
MEMORY: list[driver.CUdeviceptr] = []
random = np.random.default_rng(3)


def done(result: tuple) -> object:
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else None


def to_gpu(values: np.ndarray) -> int:
    values = np.ascontiguousarray(values)
    address = done(driver.cuMemAlloc(values.nbytes))
    done(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
    MEMORY.append(address)
    return int(address)


def encoded(address: int, dtype: type, dims: tuple, box: tuple, swizzle: int) -> driver.CUtensorMap:
    """Encode a map of two dimensions as make_tma_2d_desc does, with the contiguous dimension first."""
    size = np.dtype(dtype).itemsize
    inner = swizzle // size if swizzle else box[0]
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{TYPES[dtype]}")
    mode = getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}")
    return done(driver.cuTensorMapEncodeTiled(
        kind, 2, address, [driver.cuuint64_t(each) for each in dims], [driver.cuuint64_t(dims[0] * size)],
        [driver.cuuint32_t(inner), driver.cuuint32_t(box[1])], [driver.cuuint32_t(1)] * 2,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, mode,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ))  # fmt: skip


def compiled(name: str, arguments: list) -> driver.CUfunction:
    """Compile an instance of a kernel as NVCCCompiler does, to PTX and with line information."""
    instance = f"{name}_impl<{', '.join(str(each) for each in arguments)}>"
    code = f"#include <deep_gemm/impls/{name}.cuh>\nusing namespace deep_gemm;\n"
    code += f"static void __instantiate_kernel() {{ auto ptr = reinterpret_cast<void*>(&{instance}); }}\n"
    options = ["-std=c++20", "-arch=sm_90a", "-O3", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-lineinfo"]
    folders = [f"-I{CLONE}/deep_gemm/include", f"-I{CUTLASS}/include"]
    with tempfile.TemporaryDirectory() as folder:
        (source := Path(folder, "kernel.cu")).write_text(code)
        begun = time.monotonic()
        subprocess.run(["nvcc", "-w", "-ptx", *options, *folders, source.name], cwd=folder, check=True)
        print(f"compiled in {time.monotonic() - begun:.0f} s")
        ptx = source.with_suffix(".ptx").read_bytes()
    entry = re.search(rb"\.entry (\w+)", ptx)
    module = done(driver.cuModuleLoadData(ptx + b"\0"))
    return done(driver.cuModuleGetFunction(module, entry[1]))


def launched(kernel: driver.CUfunction, values: list, sms: int, threads: int, shared: int, cluster: int) -> None:
    """Launch with the attributes of construct_launch_config."""
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    done(driver.cuFuncSetAttribute(kernel, limit, shared))
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = sms, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    if cluster > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = cluster, 1, 1
        config.attrs, config.numAttrs = [attribute], 1
    kinds = {int: ctypes.c_void_p, np.uint32: ctypes.c_uint32}
    arguments = [each if isinstance(each, driver.CUtensorMap) else int(each) for each in values]
    done(
        driver.cuLaunchKernelEx(config, kernel, (tuple(arguments), tuple(kinds.get(type(each)) for each in values)), 0)
    )
    done(driver.cuCtxSynchronize())


def swizzle_of(columns: int, size: int) -> int:
    return next(each for each in (128, 64, 32, 16) if columns * size % each == 0)


def compare(address: int, expected: np.ndarray, dtype: type, bound: float) -> None:
    found = np.empty(expected.shape, dtype)
    done(driver.cuMemcpyDtoH(found.ctypes.data, address, found.nbytes))
    worst = np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max()
    print(f"{'Passed' if worst <= bound else 'Failed'}, at most {worst:.5f} of the largest result from NumPy's")
    for each in MEMORY:
        done(driver.cuMemFree(each))
    sys.exit(int(worst > bound))


def bf16(m: int, n: int, k: int, tile_m: int, tile_n: int, cluster: int) -> None:
    a, b = (random.standard_normal((rows, k)).astype(BF16) for rows in (m, n))
    mode = swizzle_of(tile_n, 2)
    stages = min((SHARED - tile_m * tile_n * 2 - 256) // ((tile_m + tile_n) * 128), 16)
    threads, sms = 128 if tile_m <= 64 else 256, 2
    kernel = compiled("sm90_bf16_gemm", [
        "cute::UMMA::Major::K", "cute::UMMA::Major::K", 0, n, k, 1, tile_m, tile_n, 64, 128, 128, mode, stages, 128,
        threads, cluster, "false", sms, "GemmType::Normal", "false", "cutlass::bfloat16_t",
    ])  # fmt: skip
    out = to_gpu(np.zeros((m, n), BF16))
    maps = [encoded(to_gpu(a), BF16, (k, m), (64, tile_m), 128), encoded(to_gpu(b), BF16, (k, n), (64, tile_n), 128)]
    maps.append(encoded(out, BF16, (n, m), (tile_n, tile_m), mode))
    shared = tile_m * tile_n * 2 + 256 + stages * (tile_m + tile_n) * 128
    launched(kernel, [0, *map(np.uint32, (m, n, k)), *maps], sms, 128 + threads, shared, cluster)
    compare(out, a.astype(np.float64) @ b.astype(np.float64).T, BF16, 0.004)


def scaled(rows: int, k: int, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values of fp8, a scale for each group of rows and 128 columns, and the product of both."""
    values = random.standard_normal((rows, k)).astype(FP8)
    scales = random.uniform(0.5, 2, (-(-rows // group), k // 128)).astype(np.float32)
    each = np.repeat(np.repeat(scales, group, 0)[:rows], 128, 1)
    return values, scales, values.astype(np.float64) * each


def fp8(m: int, n: int, k: int, tile_m: int, tile_n: int, cluster: int) -> None:
    """Run the kernel with scales of A for each row, and of B for blocks of 128 by 128."""
    (a, scale_a, real_a), (b, scale_b, real_b) = scaled(m, k, 1), scaled(n, k, 128)
    mode, threads, sms = swizzle_of(tile_n, 2), 128 if tile_m <= 64 else 256, 2
    extra = k // 128 * 4 * (1 if 128 % tile_n == 0 else 2)
    fixed = tile_m * tile_n * 2 + 256 + -(-extra // 8) * 8
    stage = (tile_m + tile_n) * 128 + tile_m * 4
    stages = min((SHARED - fixed) // stage, 16)
    kernel = compiled("sm90_fp8_gemm_1d2d", [
        "cute::UMMA::Major::K", 0, n, k, 1, tile_m, tile_n, 128, 128, 128, mode, stages, 128, threads, cluster, "false",
        sms, "GemmType::Normal", "cutlass::bfloat16_t", "epilogue::transform::EpilogueIdentity",
    ])  # fmt: skip
    out, rows = to_gpu(np.zeros((m, n), BF16)), -(-m // 4) * 4
    maps = [encoded(to_gpu(a), FP8, (k, m), (128, tile_m), 128), encoded(to_gpu(b), FP8, (k, n), (128, tile_n), 128)]
    maps.append(encoded(out, BF16, (n, m), (tile_n, tile_m), mode))
    padded = np.zeros((k // 128, rows), np.float32)
    padded[:, :m] = scale_a.T
    maps.append(encoded(to_gpu(padded), np.float32, (rows, k // 128), (tile_m, 1), 0))
    values = [to_gpu(scale_b), 0, *map(np.uint32, (m, n, k)), *maps]
    launched(kernel, values, sms, 128 + threads, fixed + stages * stage, cluster)
    compare(out, real_a @ real_b.T, BF16, 0.004)


def fp8_f32(m: int, n: int, k: int, tile_m: int, tile_n: int, cluster: int) -> None:
    """Run the kernel with scales of A and B for each row, which adds to a result of f32."""
    (a, scale_a, real_a), (b, scale_b, real_b) = scaled(m, k, 1), scaled(n, k, 1)
    threads, sms, fixed = 128 if tile_m <= 64 else 256, 2, tile_m * tile_n * 4 + 256
    stage = (tile_m + tile_n) * 128 + tile_m * 4 + -(-tile_n * 4 // 128) * 128
    stages = min((SHARED - fixed) // stage, 16)
    kernel = compiled("sm90_fp8_gemm_1d1d", [
        0, n, k, 1, tile_m, tile_n, 128, 128, 128, stages, 128, threads, cluster, "false", sms, "GemmType::Normal",
        "float",
    ])  # fmt: skip
    first = random.standard_normal((m, n)).astype(np.float32)
    out = to_gpu(first)
    maps = [encoded(to_gpu(a), FP8, (k, m), (128, tile_m), 128), encoded(to_gpu(b), FP8, (k, n), (128, tile_n), 128)]
    for scales, tile in ((scale_a, tile_m), (scale_b, tile_n)):
        maps.append(encoded(to_gpu(scales.T), np.float32, (len(scales), k // 128), (tile, 1), 0))
    maps.append(encoded(out, np.float32, (n, m), (tile_n, 64), 0))
    values = [0, 0, 0, 0, *map(np.uint32, (m, n, k)), *maps]
    launched(kernel, values, sms, 128 + threads, fixed + stages * stage, cluster)
    compare(out, first + real_a @ real_b.T, np.float32, 0.001)


Device().set_current()
{
    "bf16": lambda: bf16(192, 256, 320, 128, 128, 1),
    "bf16_cluster": lambda: bf16(512, 128, 256, 128, 128, 2),
    "fp8": lambda: fp8(192, 256, 384, 128, 128, 1),
    "fp8_cluster": lambda: fp8(256, 96, 256, 64, 96, 2),
    "fp8_f32": lambda: fp8_f32(128, 256, 256, 128, 128, 1),
}[CASE]()
