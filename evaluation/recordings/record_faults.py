"""Record the CUDA error of each misuse of TMA, and the calls that work afterwards.

The script needs a GPU of compute capability 9.0.

The script needs ``cuda.core`` and the parts of ``cuda_tma`` that need no GPU (installed, or ``PYTHONPATH=.``). The
first row contains the names of the device and the driver. Each other row is a case of ``fault_cases.py``, with the
fields of the section below.

The numbers are those of ``CUresult``. The field ``names`` of the first row contains their names and texts.

Fields of a row
---------------
- ``healthy``: the results of a launch and a wait before the case, in the same process, which starts after others have
  failed;
- ``launch``: the result of the launch; ``found``: the result of the wait for it, or ``"hang"`` after three seconds;
- ``out``, if the kernel reached its end: whether its phase completed within a fifth of a second, and the barrier's
  word;
- ``after``: the results of other calls of the process, one by one; ``reset``: those after
  ``cuDevicePrimaryCtxReset``, in the same process;
- ``blocking``: the case ran once more with ``CUDA_LAUNCH_BLOCKING=1``;
- ``ended``, if the process did not end by itself: its last output.

Examples
--------
    python record_faults.py faults_sm90.jsonl.gz      # less than a minute, with a process for each case
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cuda.bindings import driver
from fault_cases import CASES, HOST, SMEM_BYTES, USUAL_MAP, Case
from fault_kernels import GIVEN, SOURCE
from recordings import write

SECONDS, HANG_SECONDS = 30, 3
TOTAL_SECONDS, AT_ONCE = 240, 4
MEMORY_BYTES = 1 << 20
_NOT_READY = 600
BLOCKING = ("a load", "a load from a wild address", "the innermost coordinate is not a multiple of 16 bytes", "trap")
_END = time.monotonic() + TOTAL_SECONDS


class Given(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64 if i < 3 else ctypes.c_uint32) for i, name in enumerate(GIVEN))


class Packed:
    """Both parameters of a kernel in the driver's form, which are valid until this object is deleted."""

    def __init__(self, raw_map: bytes, given: Given):
        self.held = ctypes.create_string_buffer(raw_map, 128), given
        self._pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, self.held))
        self.place = ctypes.addressof(self._pointers)


def called(function: Any, *arguments: Any) -> tuple[int, Any]:
    """Call a function, and return the number of the error and the result."""
    error, *rest = function(*arguments)
    return int(error), rest[0] if rest else None


def must(function: Any, *arguments: Any) -> Any:
    error, value = called(function, *arguments)
    if error:
        raise SystemExit(f"{function.__name__} failed with {error}")
    return value


# ---- the process of one case ----


class Process:
    """A context with the kernels, memory, and two streams."""

    def __init__(self, cubin: bytes):
        must(driver.cuInit, 0)
        self.device = must(driver.cuDeviceGet, 0)
        self.context = must(driver.cuDevicePrimaryCtxRetain, self.device)
        must(driver.cuCtxSetCurrent, self.context)
        self.cubin = cubin
        self.module = must(driver.cuModuleLoadData, cubin)
        self.stream, self.other_stream = (must(driver.cuStreamCreate, 1) for _ in range(2))
        self.memory, self.out = (int(must(driver.cuMemAlloc, MEMORY_BYTES)) for _ in range(2))
        must(driver.cuMemsetD8, self.memory, 0, MEMORY_BYTES)
        must(driver.cuMemsetD8, self.out, 0, MEMORY_BYTES)

    def launch(self, name: str, raw_map: bytes, given: Given, block: int = 1, **others: Any) -> int:
        function = must(driver.cuModuleGetFunction, self.module, name.encode())
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        must(driver.cuFuncSetAttribute, function, limit, SMEM_BYTES)
        grid = others.get("grid", 2 if name.startswith("cluster_") else 1)
        smem = others.get("smem", SMEM_BYTES)
        packed = Packed(raw_map, given)
        return called(driver.cuLaunchKernel, function, grid, 1, 1, block, 1, 1, smem, self.stream, packed.place, 0)[0]

    def wait(self) -> int | str:
        """Return the final status of the stream, or ``"hang"``."""
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            found, _ = called(driver.cuStreamQuery, self.stream)
            if found != _NOT_READY:
                return found
            time.sleep(0.001)
        return "hang"

    def words(self) -> list[int]:
        found = (ctypes.c_uint64 * 3)()
        must(driver.cuMemcpyDtoH, ctypes.addressof(found), self.out, ctypes.sizeof(found))
        return list(found)

    def address(self, given: dict[str, Any], raw_map: bytes) -> int:
        """Return the address for the value of a case's address."""
        name, offset = given["address"], given.get("address_offset", 0)
        if isinstance(name, int):
            return name
        if name == "memory":
            return self.memory + offset
        if name == "host":
            pinned = must(driver.cuMemAllocHost, 4096)
            ctypes.memmove(int(pinned), raw_map, 128)
            return int(pinned)
        place = int(must(driver.cuMemAlloc, 4 << 20))
        must(driver.cuMemsetD8, place, 0, 4096)
        if name == "freed":
            must(driver.cuMemFree, place)
        elif name == "map":
            must(driver.cuMemcpyHtoD, place + offset, raw_map, 128)
        return place + offset

    def after(self) -> dict[str, int]:
        """Return the results of calls that are independent of the kernel."""
        found = {}
        found["cuMemAlloc"], _ = called(driver.cuMemAlloc, 4096)
        found["cuTensorMapEncodeTiled"] = encode(self.memory)
        found["cuTensorMapEncodeTiled of a map that breaks a rule"] = encode(self.memory + 1)
        found["cuCtxGetCurrent"], _ = called(driver.cuCtxGetCurrent)
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        found["cuPointerGetAttribute"], _ = called(driver.cuPointerGetAttribute, kind, self.memory)
        found["cuStreamCreate"], _ = called(driver.cuStreamCreate, 1)
        found["cuStreamQuery of another stream"], _ = called(driver.cuStreamQuery, self.other_stream)
        found["cuLaunchKernel"] = self.launch_healthy()
        found["cuStreamSynchronize"], _ = called(driver.cuStreamSynchronize, self.stream)
        eight = ctypes.c_uint64()
        found["cuMemcpyDtoH"], _ = called(driver.cuMemcpyDtoH, ctypes.addressof(eight), self.memory, 8)
        found["cuModuleLoadData"], _ = called(driver.cuModuleLoadData, self.cubin)
        found["cuMemFree"], _ = called(driver.cuMemFree, self.memory)
        found["cuCtxSynchronize"], _ = called(driver.cuCtxSynchronize)
        return found

    def launch_healthy(self) -> int:
        error, function = called(driver.cuModuleGetFunction, self.module, b"healthy")
        if error:
            return error
        packed = Packed(bytes(128), Given(out=self.out))
        return called(driver.cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, self.stream, packed.place, 0)[0]

    def reset(self) -> dict[str, int]:
        """Return whether the process can continue with a new primary context."""
        found = {}
        found["cuDevicePrimaryCtxReset"], _ = called(driver.cuDevicePrimaryCtxReset, self.device)
        found["cuDevicePrimaryCtxRetain"], context = called(driver.cuDevicePrimaryCtxRetain, self.device)
        if context is not None:
            found["cuCtxSetCurrent"], _ = called(driver.cuCtxSetCurrent, context)
        found["cuMemAlloc"], _ = called(driver.cuMemAlloc, 4096)
        return found


def encode(address: int) -> int:
    """Return the result of the driver's own encoder for the map of a case."""
    raw = ctypes.create_string_buffer(256)
    place = (ctypes.addressof(raw) + 63) // 64 * 64
    library = ctypes.CDLL("libcuda.so.1")
    words = (ctypes.c_uint64 * 2)(64, 64), (ctypes.c_uint64 * 1)(256), (ctypes.c_uint32 * 2)(32, 32)
    steps = (ctypes.c_uint32 * 2)(1, 1)
    return int(
        library.cuTensorMapEncodeTiled(ctypes.c_void_p(place), 7, 2, ctypes.c_void_p(address), *words, steps, *[0] * 4)
    )


def raw_map(case: Case, address: int) -> bytes:
    from cuda_tma.codec import encode as bytes_of

    raw = bytearray(bytes_of(case.params or USUAL_MAP))
    if not any(raw[:8]):
        raw[:8] = address.to_bytes(8, "little")
    for offset, value in case.patch.items():
        raw[offset] = value
    return bytes(raw)


def work(name: str, cubin: bytes) -> None:
    case = CASES[name]
    process = Process(cubin)
    healthy = process.launch("healthy", bytes(128), Given(out=process.out)), process.wait()
    print(json.dumps({"healthy": list(healthy)}), flush=True)
    if case.kernel.startswith(HOST):
        row = {"launch": _HOST[case.kernel](process), "found": process.wait()}
    else:
        raw = raw_map(case, process.memory)
        numbers = {key: value for key, value in case.arguments.items() if key != "address_offset"}
        numbers |= {"memory": process.memory, "out": process.out, "address": process.address(case.arguments, raw)}
        must(driver.cuMemcpyHtoD, must(driver.cuModuleGetGlobal, process.module, b"constant_map"), raw, 128)
        row = {"launch": process.launch(case.kernel, raw, Given(**numbers), case.block), "found": process.wait()}
    if row["found"] == 0 and not case.kernel.startswith(HOST):
        row["out"] = process.words()
    print(json.dumps(row), flush=True)
    if row["found"] != "hang":
        print(json.dumps({"after": process.after()}), flush=True)
        print(json.dumps({"reset": process.reset()}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # The function os._exit() does not wait for a hung kernel or a lost context.


def _cooperative(process: Process) -> int:
    function = must(driver.cuModuleGetFunction, process.module, b"healthy")
    packed = Packed(bytes(128), Given(out=process.out))
    grid_and_block = 1 << 16, 1, 1, 1024, 1, 1
    return called(driver.cuLaunchCooperativeKernel, function, *grid_and_block, 0, process.stream, packed.place)[0]


def _no_context(process: Process) -> int:
    must(driver.cuCtxSetCurrent, driver.CUcontext(0))
    found = encode(process.memory)
    must(driver.cuCtxSetCurrent, process.context)
    return found


_HOST = {
    "host: threads": lambda process: process.launch("healthy", bytes(128), Given(out=process.out), 2048),
    "host: shared memory": lambda process: process.launch("healthy", bytes(128), Given(), smem=1 << 20),
    "host: grid": lambda process: process.launch("cluster_load", bytes(128), Given(), grid=3),
    "host: cooperative": _cooperative,
    "host: rule": lambda process: encode(process.memory + 1),
    "host: address 0": lambda process: encode(0),
    "host: no context": _no_context,
}

# ---- all cases ----


def compiled() -> bytes:
    from cuda.core import Program, ProgramOptions

    return bytes(Program(SOURCE, "c++", ProgramOptions(std="c++17", arch="sm_90a")).compile("cubin").code)


def row_of(name: str, cubin_path: str, is_blocking: bool = False) -> dict[str, Any]:
    command = [sys.executable, __file__, "work", name, cubin_path]
    environment = os.environ | ({"CUDA_LAUNCH_BLOCKING": "1"} if is_blocking else {})
    row: dict[str, Any] = {"case": name, **({"blocking": True} if is_blocking else {})}
    if time.monotonic() > _END:
        return row | {"ended": "not begun: the time was up"}
    try:
        child = subprocess.run(command, capture_output=True, timeout=SECONDS, env=environment)
        output, ended = child.stdout, child.returncode and child.stderr.decode(errors="replace").strip()[-300:]
    except subprocess.TimeoutExpired as error:
        output, ended = error.stdout or b"", f"no end after {SECONDS} s"
    for line in output.splitlines():
        row |= json.loads(line)
    return row | ({"ended": ended} if ended else {})


def names() -> dict[int, list[str]]:
    """Return the name and the text of every error."""
    found = {}
    for error in driver.CUresult:
        texts = [called(function, error)[1] for function in (driver.cuGetErrorName, driver.cuGetErrorString)]
        found[int(error)] = [text.decode() for text in texts if text]
    return found


def device() -> dict[str, Any]:
    must(driver.cuInit, 0)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, version = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    return {"device": name, "driver": version, "cuda": must(driver.cuDriverGetVersion), "names": names()}


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2], Path(sys.argv[3]).read_bytes())
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file, ThreadPoolExecutor(AT_ONCE) as pool:
        file.write(compiled())
        file.flush()
        rows = [device(), *pool.map(lambda name: row_of(name, file.name), CASES)]
        rows += pool.map(lambda name: row_of(name, file.name, True), BLOCKING)
    write(sys.argv[1], rows)
    for row in rows[1:]:
        print(row["case"], row.get("launch"), row.get("found"), row.get("out", ""), row.get("ended", ""), sep=" | ")
    return None


if __name__ == "__main__":
    main()
