"""Record what TMA stores and reductions do to global memory, on a GPU of compute capability 9.0 or later.

    python tools/record_stores.py record stores.jsonl.gz [--cases 1500] [--seconds 240] [--seed 1]
    python tools/record_stores.py compare stores.jsonl.gz        # the emulator against the recordings; needs no GPU

Needs ``cuda.bindings`` and NVRTC, and the parts of ``cuda_tma`` that need no GPU (installed, or ``PYTHONPATH=.``). Each
row of the output holds ``params`` (driver order, ``global_offset`` in place of the address), ``coordinates``, ``op``
("store" or a reduction), ``smem_seed``, ``tiny``, and one of

- ``memory_sha256`` of all global memory afterwards, ``changed_bytes``, and for small changes ``changed``: base64 of
  zlib of int32 offsets and then the new bytes;
- ``fault``: the CUDA error that ended the context;
- ``refused``: the error of the driver's encoder.

Global memory and shared memory are `content(seed, size, tiny)`, so that every row can be replayed. Cases with a
documented outcome come first, then the ones that may fault (unaligned and negative coordinates, undocumented types,
im2col boxes outside the tensor). Cases run in a worker process; one that a fault ends is replaced, and goes on behind
the case that killed it. Cases that the emulator expects to fault are kept rare, since each costs a process.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from cuda_tma import emulate
from cuda_tma.data_type import element_bits
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.errors import TensorMapError, TensorMapFault
from cuda_tma.params import Im2colParams
from cuda_tma.swizzle import smem_bytes
from cuda_tma.testing import params_from_recording

MEMORY_BYTES = 1 << 20
MEMORY_SEED = 12345
SMEM_LIMIT_BYTES = 64 << 10
SMALL_CHANGE_BYTES = 256
OPS = ("store", *emulate.REDUCTIONS)
SM90_TYPES = tuple(t for t in T if t <= T.TFLOAT32_FTZ)


def content(seed: int, size: int, tiny: bool) -> np.ndarray:
    """Random bytes; `tiny` clears exponents, so that floats of 2 and 4 bytes are around the subnormal range."""
    data = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, size, dtype=np.uint8)
    if tiny:
        data[1::2] &= 0x80
    return data


# Cases --------------------------------------------------------------------------------------------------------------


def _strides(rng, inner_bytes: int, dims: list[int], multiple: int) -> list[int]:
    strides: list[int] = []
    for extent in dims[:-1]:
        size = strides[-1] * extent if strides else inner_bytes * extent
        strides.append((-(-size // multiple) + int(rng.integers(0, 3))) * multiple)
    return strides


def _common(rng, data_type: T, rank: int, largest: int) -> dict:
    strided = rng.random() < 0.3
    return {
        "data_type": int(data_type),
        "rank": rank,
        "global_offset": 1024 * int(rng.integers(0, 8)),
        "global_dim": [int(rng.integers(1, largest)) for _ in range(rank)],
        "element_strides": [int(rng.choice([1, 2, 3])) if strided else 1 for _ in range(rank)],
        "l2_promotion": int(rng.integers(0, 4)),
        "oob_fill": 0,
    }


def tiled(rng, data_type: T, *, usual: bool = True) -> dict:
    """Random tiled parameters; not `usual`: an interleave with a swizzle that is not its own."""
    interleave = int(rng.choice([0, 0, 0, 1, 2])) if usual else 1
    rank = int(rng.integers(3 if interleave else 1, 6))
    p = _common(rng, data_type, rank, {1: 300, 2: 80, 3: 24, 4: 12, 5: 8}[rank])
    unit = element_bits(data_type) // 8
    swizzle = (int(rng.integers(0, 4)), 0, 1)[interleave] if usual else int(rng.integers(1, 4))
    span = 16 * interleave or (256, 32, 64, 128)[swizzle]
    inner = min(256, int(rng.integers(1, span // 16 + 1)) * 16 // unit)
    strides = _strides(rng, 16 * interleave or unit, p["global_dim"], 32 if interleave == 2 else 16)
    box = [inner, *(int(rng.integers(1, {2: 33, 3: 9, 4: 5, 5: 4}[rank])) for _ in range(rank - 1))]
    return p | {
        "kind": "tiled",
        "global_strides": strides,
        "box_dim": box,
        "interleave": interleave,
        "swizzle": swizzle,
    }


def im2col(rng, data_type: T, *, inside: bool = True) -> dict:
    """Random im2col parameters; `inside`: the pixel box stays in the tensor, as PTX ISA asks of stores."""
    rank = int(rng.integers(3, 6))
    p = _common(rng, data_type, rank, {3: 24, 4: 12, 5: 8}[rank])
    unit = element_bits(data_type) // 8
    swizzle = int(rng.integers(0, 4))
    span = (128, 32, 64, 128)[swizzle]
    least = 0 if inside else -2
    lower = [int(rng.integers(least, 1 + min(2, n - 1))) for n in p["global_dim"][1:-1]]
    upper = [
        int(rng.integers(max(-2, low + 1 - n), 1 - least)) for low, n in zip(lower, p["global_dim"][1:-1], strict=True)
    ]
    return p | {
        "kind": "im2col",
        "global_strides": _strides(rng, unit, p["global_dim"], 16),
        "pixel_box_lower_corner": lower,
        "pixel_box_upper_corner": upper,
        "channels_per_pixel": int(rng.integers(1, span // 16 + 1)) * 16 // unit,
        "pixels_per_column": int(rng.integers(1, 64)),
        "interleave": 0,
        "swizzle": swizzle,
    }


def start(rng, p: dict, *, negative: bool = False, aligned: bool = True) -> list[int]:
    """Coordinates at which the box is at least partly inside the tensor, or just beyond it."""
    least = -3 if negative else 0
    at = [n if rng.random() < 0.05 else int(rng.integers(least, n)) for n in p["global_dim"]]
    if aligned and not p["interleave"]:
        multiple = 128 // element_bits(p["data_type"])
        at[0] = at[0] // multiple * multiple
    if p["kind"] == "im2col":
        corners = zip(p["pixel_box_lower_corner"], p["pixel_box_upper_corner"], p["global_dim"][1:-1], strict=True)
        at[1:-1] = [int(rng.integers(low, n + up)) for low, up, n in corners]
    return at


def _safe(rng) -> dict:
    op = str(rng.choice(OPS, p=[0.4, *[0.6 / (len(OPS) - 1)] * (len(OPS) - 1)]))
    types = SM90_TYPES if op == "store" else tuple(emulate.REDUCTIONS[op])
    p = (tiled if rng.random() < 0.7 else im2col)(rng, T(int(rng.choice(types))))
    return {"params": p, "coordinates": start(rng, p), "op": op}


def _risky(rng, number: int) -> dict:
    """One case of each kind in turn that hardware may answer with a fault, or with nothing documented."""
    data_type = T(int(rng.choice(SM90_TYPES)))
    kind = number % 6
    if kind == 0:
        p = tiled(rng, data_type)
        return {"params": p, "coordinates": start(rng, p, negative=True), "op": "store"}
    if kind == 1:
        p = im2col(rng, data_type, inside=False)
        return {"params": p, "coordinates": start(rng, p), "op": "store"}
    if kind == 2:
        p = tiled(rng, data_type, usual=False)
        return {"params": p, "coordinates": start(rng, p), "op": "store"}
    if kind == 3:
        p = tiled(rng, data_type)
        return {"params": p, "coordinates": start(rng, p, aligned=False), "op": "store"}
    if kind == 4:
        p = tiled(rng, T.UINT32)
        return {"params": p, "coordinates": start(rng, p, negative=True), "op": "add"}
    undocumented = [(op, t) for op in emulate.REDUCTIONS for t in SM90_TYPES if t not in emulate.REDUCTIONS[op]]
    op, data_type = undocumented[number // 6 % len(undocumented)]
    p = tiled(rng, data_type)
    return {"params": p, "coordinates": start(rng, p), "op": op}


def fits(case: dict) -> bool:
    """Whether tensor and box fit the recorder's memory and shared memory."""
    p = params_from_recording(case["params"])
    unit = 16 * p.interleave or element_bits(p.data_type) // 8
    last = sum((n - 1) * s for n, s in zip(p.global_dim[1:], p.global_strides, strict=True)) + p.global_dim[0] * unit
    return p.global_address + last <= MEMORY_BYTES and smem_bytes(p) <= SMEM_LIMIT_BYTES


def expected_to_fault(case: dict) -> bool:
    p = params_from_recording(case["params"])
    try:
        emulate.store(p, np.zeros(MEMORY_BYTES, np.uint8), np.zeros(smem_bytes(p), np.uint8), case["coordinates"])
    except TensorMapFault:
        return True
    return False


def cases(count: int, seed: int) -> list[dict]:
    rng = np.random.Generator(np.random.PCG64(seed))
    safe = [case for case in (_safe(rng) for _ in range(2 * count)) if fits(case) and not expected_to_fault(case)]
    risky = [case for case in (_risky(rng, n) for n in range(count // 3)) if fits(case)]
    faults = [case for case in risky if expected_to_fault(case)]
    chosen = safe[:count] + [case for case in risky if case not in faults] + faults[:5]
    return [case | {"smem_seed": n, "tiny": n % 3 == 0 and case["op"] == "add"} for n, case in enumerate(chosen)]


# Device -------------------------------------------------------------------------------------------------------------

_KERNEL = """
extern "C" __global__ void {name}(const __grid_constant__ TensorMap map, const unsigned char* source, unsigned size,
                                  int c0, int c1, int c2, int c3, int c4) {{
    extern __shared__ unsigned char raw[];
    unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;
    unsigned char* smem = raw + (base - static_cast<unsigned>(__cvta_generic_to_shared(raw)));
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) smem[i] = source[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {{
        asm volatile("{instruction} [%0, {{{operands}}}], [%6];"
                     :: "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(base) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }}
}}
"""


def kernel_name(kind: str, rank: int, op: str) -> str:
    return f"{kind}_{rank}d_{op}"


def _kernel(kind: str, rank: int, op: str) -> str:
    mode = {"tiled": "tile", "im2col": "im2col_no_offs"}[kind]
    copy = "cp" if op == "store" else "cp.reduce"
    reduction = "" if op == "store" else f".{op}"
    instruction = f"{copy}.async.bulk.tensor.{rank}d.global.shared::cta{reduction}.{mode}.bulk_group"
    operands = ", ".join(f"%{1 + d}" for d in range(rank))
    return _KERNEL.format(name=kernel_name(kind, rank, op), instruction=instruction, operands=operands)


def source_code() -> str:
    variants = [("tiled", rank) for rank in range(1, 6)] + [("im2col", rank) for rank in range(3, 6)]
    header = "struct alignas(64) TensorMap { unsigned char bytes[128]; };\n"
    return header + "".join(_kernel(kind, rank, op) for kind, rank in variants for op in OPS)


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


class CudaError(Exception):
    pass


def call(result: tuple):
    """The values of a driver call, or its error by name."""
    error, *values = result
    if error != 0:
        raise CudaError(error.name)
    return values[0] if len(values) == 1 else values


class Device:
    """One context with the kernels, global memory, and room for the contents of shared memory."""

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
        strides = params.global_strides or (16,)  # rank 1 has none; the driver ignores this one
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

    def run(self, name: str, tensor_map: bytes, smem: np.ndarray, coordinates: list[int], memory: np.ndarray):
        """Global memory after the kernel; `memory` is what it holds before."""
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
        ]
        values += [ctypes.c_int(c) for c in [*coordinates, 0, 0, 0, 0][:5]]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        call(d.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, shared_bytes, 0, ctypes.addressof(pointers), 0))
        call(d.cuCtxSynchronize())
        after = np.empty_like(memory)
        call(d.cuMemcpyDtoH(after.ctypes.data, self.memory, after.nbytes))
        return after


def observe(device: Device, case: dict, memory: np.ndarray) -> dict:
    params = params_from_recording(case["params"])
    try:
        tensor_map = device.encode(params)
    except CudaError as error:
        return {"refused": str(error)}
    name = kernel_name(case["params"]["kind"], params.rank, case["op"])
    smem = content(case["smem_seed"], smem_bytes(params), case["tiny"])
    return summary(memory, device.run(name, tensor_map, smem, case["coordinates"], memory))


def summary(before: np.ndarray, after: np.ndarray) -> dict:
    changed = np.flatnonzero(before != after)
    row = {"memory_sha256": hashlib.sha256(after.tobytes()).hexdigest(), "changed_bytes": int(changed.size)}
    if changed.size <= SMALL_CHANGE_BYTES:
        payload = changed.astype("<i4").tobytes() + after[changed].tobytes()
        row["changed"] = base64.b64encode(zlib.compress(payload)).decode()
    return row


# Processes ----------------------------------------------------------------------------------------------------------


def work(cubin_path: str, cases_path: str, first: int, deadline: float) -> None:
    """Run cases from number `first` on, one line of JSON each; end at the first fault, after its line."""
    todo = json.loads(Path(cases_path).read_text())
    device = Device(Path(cubin_path).read_bytes())
    memories = {tiny: content(MEMORY_SEED, MEMORY_BYTES, tiny) for tiny in (False, True)}
    for case in todo[first:]:
        if time.time() > deadline:
            return
        try:
            seen = observe(device, case, memories[case["tiny"]])
        except CudaError as error:
            seen = {"fault": str(error)}
        print(json.dumps(case | seen), flush=True)
        if "fault" in seen:
            return


def record(path: str, count: int, seconds: float, seed: int) -> None:
    deadline = time.time() + seconds
    todo = cases(count, seed)
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        cubin, listed = Path(folder, "stores.cubin"), Path(folder, "cases.json")
        cubin.write_bytes(compiled())
        listed.write_text(json.dumps(todo))
        while len(rows) < len(todo) and time.time() < deadline:
            command = [sys.executable, __file__, "work", str(cubin), str(listed), str(len(rows)), str(deadline)]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                lines, messages = worker.communicate(timeout=deadline - time.time() + 20)
            except subprocess.TimeoutExpired:  # a case that never ends: keep what came before it
                worker.kill()
                lines, messages = worker.communicate()
            fresh = [json.loads(line) for line in lines.splitlines()]
            if not fresh and time.time() < deadline:
                raise RuntimeError(f"the worker recorded nothing:\n{messages}")
            rows += fresh
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    Path(path).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    outcome = Counter(row.get("fault") or row.get("refused") or "recorded" for row in rows)
    print(f"{len(rows)} of {len(todo)} cases, {dict(outcome)}, {Path(path).stat().st_size} bytes")


# Comparison ---------------------------------------------------------------------------------------------------------


def replay(row: dict) -> dict:
    """What the emulator makes of a recorded case, in the recording's terms."""
    params = params_from_recording(row["params"])
    before = content(MEMORY_SEED, MEMORY_BYTES, row["tiny"])
    after = before.copy()
    smem = content(row["smem_seed"], smem_bytes(params), row["tiny"])
    try:
        if row["op"] == "store":
            emulate.store(params, after, smem, row["coordinates"])
        else:
            emulate.reduce(params, after, smem, row["coordinates"], row["op"])
    except TensorMapFault as fault:
        return {"fault": fault.cuda_error}
    except TensorMapError:
        return {"undocumented": True}
    return summary(before, after)


def verdict(row: dict) -> str:
    if "refused" in row:
        return "refused by the driver"
    made = replay(row)
    if "undocumented" in made:
        return f"undocumented: hardware {'faults' if 'fault' in row else 'accepts'}"
    if row.get("fault") != made.get("fault"):
        return f"DIFFERS: hardware {row.get('fault', 'accepts')}, emulator {made.get('fault', 'accepts')}"
    return "agrees" if row.get("memory_sha256") == made.get("memory_sha256") else "DIFFERS in memory"


def compare(path: str) -> None:
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    counts = Counter(
        (row["params"]["kind"], row["op"], T(row["params"]["data_type"]).name, verdict(row)) for row in rows
    )
    for key, number in sorted(counts.items(), key=lambda item: (item[0][3], item[0])):
        print(f"{number:5d}  {' '.join(key)}")
    print(Counter(key[3].split(":")[0] for key in counts.elements()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("path")
    recorder.add_argument("--cases", type=int, default=1500)
    recorder.add_argument("--seconds", type=float, default=240)
    recorder.add_argument("--seed", type=int, default=1)
    commands.add_parser("compare").add_argument("path")
    worker = commands.add_parser("work")
    for name, kind in (("cubin", str), ("cases", str), ("first", int), ("deadline", float)):
        worker.add_argument(name, type=kind)
    given = parser.parse_args()
    if given.command == "record":
        record(given.path, given.cases, given.seconds, given.seed)
    elif given.command == "compare":
        compare(given.path)
    else:
        work(given.cubin, given.cases, given.first, given.deadline)


if __name__ == "__main__":
    main()
