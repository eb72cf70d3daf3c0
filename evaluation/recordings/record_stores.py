"""Record the effect of TMA stores and reductions on global memory, on a GPU of compute capability 9.0 or later.

The script needs ``cuda.bindings`` and NVRTC, and the parts of ``cuda_tma`` that need no GPU (installed, or
``PYTHONPATH=.``). Each row of the output is a case of ``store_cases.py`` with one result.

Cases run in a worker process. After a fault, a new worker continues with the next case.

Fields of a row
---------------
- ``memory_sha256`` of all global memory afterwards, ``changed_bytes``, and for small changes ``changed``: base64 of
  zlib of int32 offsets and then the new bytes; a load's shared memory is copied to the start of global memory;
- ``fault``: the CUDA error that ended the context;
- ``refused``: the error of the driver's encoder.

Examples
--------
    python record_stores.py stores.jsonl.gz [--cases 1500] [--rare 20] [--seconds 240] [--seed 1]
    python replay_stores.py stores.jsonl.gz        # compare the emulator with the recordings, without a GPU
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from recordings import params_from_recording, write
from replay_stores import MEMORY_BYTES, MEMORY_SEED, content, summary
from store_cases import OPS, SMEM_LIMIT_BYTES, cases

from cuda_tma.params import Im2colParams
from cuda_tma.smem import smem_bytes, tx_bytes

# Kernels ------------------------------------------------------------------------------------------------------------

_HEADER = """
struct alignas(64) TensorMap { unsigned char bytes[128]; };
using u32 = unsigned;

__device__ u32 address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void copy(unsigned char* to, const unsigned char* from, u32 size) {
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) to[i] = from[i];
    __syncthreads();
}
__device__ bool completed(u32 barrier) {
    u32 done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier) : "memory");
    return done;
}
"""
_KERNEL = """
extern "C" __global__ void NAME(const __grid_constant__ TensorMap map, const unsigned char* source, u32 size,
                                unsigned char* memory, u32 tx_bytes, int c0, int c1, int c2, int c3, int c4) {
    extern __shared__ unsigned char raw[];
    __shared__ alignas(8) unsigned long long storage;
    unsigned char* smem = raw + (0u - address(raw)) % 1024;
    const u32 box = address(smem), barrier = address(&storage);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");
    copy(smem, source, size);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
BODY}
"""
_STORE = """
    if (threadIdx.x == 0) {
        asm volatile("INSTRUCTION [%0, {COORDINATES}], [%6];"
                     :: "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(box) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
"""
_LOAD = """
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(barrier), "r"(tx_bytes) : "memory");
        asm volatile("INSTRUCTION [%6], [%0, {COORDINATES}], [%7]OFFSETS;" :: "l"(&map), "r"(c0), "r"(c1), "r"(c2),
                     "r"(c3), "r"(c4), "r"(box), "r"(barrier), "h"(static_cast<unsigned short>(0)) : "memory");
    }
    for (int i = 0; !completed(barrier); ++i)
        if (i == 100000) __trap();
    copy(memory, smem, size);
"""
_RANKS = {"tiled": range(1, 6), "im2col": range(3, 6)}


def kernel_name(kind: str, rank: int, op: str) -> str:
    return f"{kind}_{rank}d_{op}"


def _instruction(kind: str, rank: int, op: str) -> str:
    mode = "tile" if kind == "tiled" else "im2col"
    if op == "load":
        return f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    mode = mode.replace("im2col", "im2col_no_offs")
    if op == "store":
        return f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group"
    return f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group"


def _kernel(kind: str, rank: int, op: str) -> str:
    words = {
        "BODY": _LOAD if op == "load" else _STORE,
        "NAME": kernel_name(kind, rank, op),
        "INSTRUCTION": _instruction(kind, rank, op),
        "COORDINATES": ", ".join(f"%{1 + d}" for d in range(rank)),
        "OFFSETS": f", {{{', '.join(['%8'] * (rank - 2))}}}" if kind == "im2col" else "",
    }
    text = _KERNEL
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def source_code() -> str:
    return _HEADER + "".join(_kernel(kind, rank, op) for kind, ranks in _RANKS.items() for rank in ranks for op in OPS)


def compiled(architecture: str = "sm_90") -> bytes:
    from cuda.bindings import nvrtc

    error, program = nvrtc.nvrtcCreateProgram(source_code().encode(), b"stores.cu", 0, [], [])
    assert error == 0, error
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if error != 0:
        log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    cubin = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


# Device -------------------------------------------------------------------------------------------------------------


class CudaError(Exception):
    pass


def call(result: tuple):
    """Return the values of a driver call, or raise the call's error by its name."""
    error, *values = result
    if error != 0:
        raise CudaError(error.name)
    return values[0] if len(values) == 1 else values


class Device:
    """A context with the kernels, global memory, and space for the content of shared memory."""

    def __init__(self, cubin: bytes):
        from cuda.bindings import driver

        self.driver = driver
        call(driver.cuInit(0))
        device = call(driver.cuDeviceGet(0))
        call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(device))))
        self.module = call(driver.cuModuleLoadData(cubin))
        self.memory = call(driver.cuMemAlloc(MEMORY_BYTES))
        self.source = call(driver.cuMemAlloc(SMEM_LIMIT_BYTES))

    def encode(self, params) -> bytes:
        d = self.driver
        head = [d.CUtensorMapDataType(params.data_type), params.rank, int(self.memory) + params.global_address]
        # A map of rank 1 has no strides, so the driver ignores the 16.
        strides = params.global_strides or (16,)
        head += [[d.cuuint64_t(n) for n in params.global_dim], [d.cuuint64_t(n) for n in strides]]
        steps = [d.cuuint32_t(n) for n in params.element_strides]
        tail = [
            d.CUtensorMapInterleave(params.interleave),
            d.CUtensorMapSwizzle(params.swizzle),
            d.CUtensorMapL2promotion(params.l2_promotion),
            d.CUtensorMapFloatOOBfill(params.oob_fill),
        ]
        if isinstance(params, Im2colParams):
            corners = [list(params.pixel_box_lower_corner), list(params.pixel_box_upper_corner)]
            pixels = [params.channels_per_pixel, params.pixels_per_column]
            encoded = call(d.cuTensorMapEncodeIm2col(*head, *corners, *pixels, steps, *tail))
        else:
            box = [d.cuuint32_t(n) for n in params.box_dim]
            encoded = call(d.cuTensorMapEncodeTiled(*head, box, steps, *tail))
        return ctypes.string_at(int(encoded.getPtr()), 128)

    def run(
        self, name: str, tensor_map: bytes, tx: int, smem: np.ndarray, coordinates: list[int], memory: np.ndarray
    ) -> np.ndarray:
        """Return global memory after a run of the kernel. `memory` is its content before, and `smem` the content of
        shared memory.
        """
        d = self.driver
        call(d.cuMemcpyHtoD(self.memory, memory.ctypes.data, memory.nbytes))
        call(d.cuMemcpyHtoD(self.source, smem.ctypes.data, smem.nbytes))
        kernel = call(d.cuModuleGetFunction(self.module, name.encode()))
        shared_bytes = smem.nbytes + 1024
        limit = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call(d.cuFuncSetAttribute(kernel, limit, shared_bytes))
        values = [
            ctypes.create_string_buffer(tensor_map, 128),
            ctypes.c_void_p(int(self.source)),
            ctypes.c_uint(smem.nbytes),
            ctypes.c_void_p(int(self.memory)),
            ctypes.c_uint(tx),
            *(ctypes.c_int(c) for c in [*coordinates, 0, 0, 0, 0][:5]),
        ]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        call(d.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, shared_bytes, 0, ctypes.addressof(pointers), 0))
        call(d.cuCtxSynchronize())
        after = np.empty_like(memory)
        call(d.cuMemcpyDtoH(after.ctypes.data, self.memory, after.nbytes))
        return after


def observe(device: Device, case: dict) -> dict:
    params = params_from_recording(case["params"])
    try:
        tensor_map = device.encode(params)
    except CudaError as error:
        return {"refused": str(error)}
    name = kernel_name(case["params"]["kind"], params.rank, case["op"])
    memory = content(case["values"], MEMORY_SEED, MEMORY_BYTES)
    smem = content(case["values"], case["smem_seed"], smem_bytes(params))
    try:
        after = device.run(name, tensor_map, tx_bytes(params), smem, case["coordinates"], memory)
    except CudaError as error:
        return {"fault": str(error)}
    return summary(memory, after)


# Processes ----------------------------------------------------------------------------------------------------------


def work(cubin_path: str, cases_path: str, first: int, deadline: float) -> None:
    """Run cases from the number `first` on, and print one line of JSON for each case. End after the first fault."""
    todo = json.loads(Path(cases_path).read_text())
    device = Device(Path(cubin_path).read_bytes())
    for case in todo[first:]:
        if time.time() > deadline:
            return
        seen = observe(device, case)
        print(json.dumps(case | seen), flush=True)
        if "fault" in seen:
            return


def _worked(command: list[str], deadline: float) -> list[dict]:
    """Return the rows of one worker, up to a case that never ends."""
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines, messages = worker.communicate(timeout=max(1, deadline - time.time() + 20))
    except subprocess.TimeoutExpired:
        worker.kill()
        lines, messages = worker.communicate()
    if not lines and time.time() < deadline:
        raise RuntimeError(f"the worker recorded nothing:\n{messages}")
    return [json.loads(line) for line in lines.splitlines()]


def record(path: str, todo: list[dict], seconds: float) -> None:
    deadline = time.time() + seconds
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        cubin, listed = Path(folder, "stores.cubin"), Path(folder, "cases.json")
        cubin.write_bytes(compiled())
        listed.write_text(json.dumps(todo))
        while len(rows) < len(todo) and time.time() < deadline:
            work_arguments = [str(cubin), str(listed), str(len(rows)), str(deadline)]
            rows += _worked([sys.executable, __file__, "work", *work_arguments], deadline)
    write(path, rows)
    outcome = Counter(row.get("fault") or row.get("refused") or "recorded" for row in rows)
    print(f"{len(rows)} of {len(todo)} cases, {dict(outcome)}, {Path(path).stat().st_size} bytes")


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        cubin, listed, first, deadline = sys.argv[2:]
        return work(cubin, listed, int(first), float(deadline))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--cases", type=int, default=1500, help="documented ones")
    parser.add_argument("--rare", type=int, default=20, help="of each kind that may fault")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return record(given.path, cases(given.cases, given.rare, given.seed), given.seconds)


if __name__ == "__main__":
    main()
