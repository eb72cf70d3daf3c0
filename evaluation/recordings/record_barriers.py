"""Record the 64 bits of an mbarrier in every state, on a GPU of compute capability 9.0.

The script needs ``cuda.core`` and ``cuda_tma`` (installed, or ``PYTHONPATH=.``). While a barrier is in use, its word is
not in shared memory, and an ordinary load reads the earlier content. ``mbarrier.inval`` writes the word to memory. For
each operation of a case, the script therefore repeats all preceding operations, invalidates the barrier, and reads its
word.

Each row of the output is a case of ``barrier_cases.py`` with ``operations``, the ``words`` after each operation,
``looked`` and ``returned``. ``looked`` contains the words that an ordinary load read before ``inval``, if they differ.
``returned`` contains the result of each operation (a state, or whether a phase has completed). ``ended`` is the reason
if a case did not reach its end, which is the CUDA error or a hang. The result of the operation after the last word is
then unknown. Cases that PTX leaves undefined (``undefined``) run in separate processes. There are two more kinds of
rows. ``contended`` contains words that a thread read by inval while other threads used the barrier. The first row is
``device``.

Examples
--------
    python record_barriers.py barriers_sm90.jsonl.gz      # half a minute, never more than two
    python replay_barriers.py barriers_sm90.jsonl.gz      # find the layout in the words, without a GPU
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

from barrier_cases import OPERATIONS, REMOTE, cases, undefined_cases
from recordings import write

SECONDS, TOTAL_SECONDS, AT_ONCE = 20, 80, 4
_END = time.monotonic() + TOTAL_SECONDS

_OPERANDS = '"+l"(result) : "r"(at), "r"(number), "r"(smem), "l"(memory), "r"(pair) : "memory"'
_CASE = '    case {number}: asm volatile("{ptx}" : OPERANDS); break;'.replace("OPERANDS", _OPERANDS)
_STEPS = r"""
struct Operation { unsigned name, number; };
struct Seen { unsigned long long looked, word, returned, done; };

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ unsigned long long read(unsigned at) {
    unsigned long long word;
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(word) : "r"(at) : "memory");
    return word;
}
__device__ void meet() { asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }
__device__ unsigned long long run(Operation operation, unsigned at, unsigned smem, void* memory, unsigned pair) {
    unsigned long long result = 0;
    const unsigned number = operation.number;
    switch (operation.name) {
CASES
    }
    return result;
}

// Run one thread in each CTA: the second CTA's thread executes the remote operations. In `seen`, which is host memory,
// `done` is written last.
extern "C" __global__ __cluster_dims__(2) void steps(const Operation* operations, unsigned count, unsigned first_remote,
                                                     void* memory, Seen* seen) {
    __shared__ alignas(128) unsigned char tile[4096];
    __shared__ alignas(16) unsigned long long pair[2];
    const unsigned at = address(pair + 1);
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(at));
    for (unsigned i = 0; i < count; ++i) {
        for (unsigned j = 0; j <= i; ++j) {
            const bool is_remote = operations[j].name >= first_remote;
            meet();
            if (blockIdx.x != is_remote) continue;
            const unsigned long long returned =
                run(operations[j], is_remote ? remote : at, address(tile), memory, address(pair));
            if (i == j) seen[i].returned = returned;
        }
        meet();
        if (blockIdx.x == 0) {
            __nanosleep(2000);
            seen[i].looked = read(at);
            asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at) : "memory");
            seen[i].word = read(at);
            __threadfence_system();
            seen[i].done = 1;
        }
        meet();
    }
}

// Thread 0 repeatedly takes the word by inval while the other warps use the barrier: they arrive, expect and complete
// bytes, or wait, and count the waits that end. Finally it completes the phase, and takes the word.
extern "C" __global__ void contend(unsigned kind, unsigned reads, unsigned long long* words) {
    __shared__ unsigned long long barrier;
    __shared__ unsigned passed;
    const unsigned at = address(&barrier), arrivals = kind == 0 ? 0xFFFFF : 1;
    if (threadIdx.x == 0) {
        passed = 0;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
        for (unsigned i = 0; i < 2000; ++i) {
            if (kind == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
            if (kind == 1) {
                asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at) : "memory");
                asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at) : "memory");
            }
            if (kind == 2) {
                unsigned complete;
                asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, 20000;"
                             " selp.u32 %0, 1, 0, p; }" : "=r"(complete) : "r"(at) : "memory");
                if (complete) { atomicAdd(&passed, 1); break; }
            }
        }
    } else if (threadIdx.x == 0) {
        for (unsigned i = 0; i < reads; ++i) {
            asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at) : "memory");
            words[i] = read(at);
        }
        if (kind == 2) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
    }
    __syncthreads();
    if (threadIdx.x) return;
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at) : "memory");
    words[reads] = read(at);
    words[reads + 1] = passed;
}
"""
_NAMES = list(OPERATIONS)
_FIRST_REMOTE = next(number for number, name in enumerate(_NAMES) if name.startswith(REMOTE))
SOURCE = _STEPS.replace(
    "CASES", "\n".join(_CASE.format(number=i, ptx=ptx) for i, ptx in enumerate(OPERATIONS.values()))
)
KINDS = ("arrivals", "bytes", "waits")


class Machine:
    """A GPU with the kernels.

    The kernels write to host memory, which survives a fault.
    """

    def __init__(self, cubin: str) -> None:
        from cuda.core import ObjectCode

        import cuda_tma

        self.device = cuda_tma.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.kernels = ObjectCode.from_cubin(Path(cubin).read_bytes())
        self.memory = self.device.allocate(1 << 20, stream=self.stream)
        self.stream.sync()

    def run(self, name: str, config: Any, arguments: tuple, count: int) -> tuple[Any, str]:
        """Run a kernel. Return its output as words of 64 bits, and its result. The last argument of a kernel is the
        address of the output.
        """
        import numpy as np
        from cuda.bindings import driver

        import cuda_tma

        error, place = driver.cuMemAllocHost(8 * count)
        assert not error, error
        words = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(int(place)))
        words[:] = 0
        cuda_tma.launch(self.stream, config, self.kernels.get_kernel(name), *arguments, int(place))
        (error,) = driver.cuStreamSynchronize(int(self.stream.handle))
        return words.copy(), error.name if error else ""

    def steps(self, operations: list) -> dict:
        import numpy as np
        from cuda.bindings import driver
        from cuda.core import LaunchConfig

        codes = np.array([(_NAMES.index(name), number) for name, number in operations], np.uint32)
        given = self.device.allocate(codes.nbytes, stream=self.stream)
        self.stream.sync()
        (error,) = driver.cuMemcpyHtoD(int(given.handle), codes.ctypes.data, codes.nbytes)
        assert not error, error
        arguments = given, np.uint32(len(codes)), np.uint32(_FIRST_REMOTE), self.memory
        config = LaunchConfig(grid=1, cluster=2, block=1)
        words, ended = self.run("steps", config, arguments, 4 * len(codes))
        done = int(words[3::4].sum())
        looked, settled, returned = ([f"{word:016x}" for word in words[i::4].tolist()] for i in range(3))
        differ = {str(i): looked[i] for i in range(done) if looked[i] != settled[i]}
        results = {str(i): word for i, word in enumerate(returned) if int(word, 16)}
        found = {"words": settled[:done], "looked": differ, "returned": results}
        return found | ({"ended": ended} if ended else {})

    def contended(self, kind: str) -> dict:
        import numpy as np
        from cuda.core import LaunchConfig

        reads = 1024
        numbers = np.uint32(KINDS.index(kind)), np.uint32(reads)
        words, ended = self.run("contend", LaunchConfig(grid=1, block=288), numbers, reads + 2)
        *read, last, passed = (f"{word:016x}" for word in words.tolist())
        found = {"different": len(set(read)), "some": sorted(set(read))[:: max(1, len(set(read)) // 8)]}
        return {"contended": kind, "reads": reads, **found, "last": last, "passed": int(passed, 16), "ended": ended}


def driver_version() -> dict[str, str]:
    """Return the version of the kernel-mode driver, which only the driver's own tool reports."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return {"driver": subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]}
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {}


def compiled() -> bytes:
    from cuda.core import Program, ProgramOptions

    return bytes(Program(SOURCE, "c++", ProgramOptions(std="c++17", arch="sm_90a")).compile("cubin").code)


def work(cubin: str, which: str, begin: int) -> None:
    """Print the defined cases from a number on, one undefined case, or the contended words, with one row in
    each line."""
    machine = Machine(cubin)
    if which == "defined":
        if begin == 0:
            facts = {"device": machine.device.name, "compute_capability": machine.device.arch}
            print(json.dumps(facts | driver_version()), flush=True)
        for name, operations in list(cases())[begin:]:
            row = {"case": name, "operations": operations, **machine.steps(operations)}
            print(json.dumps(row), flush=True)
            if "ended" in row:
                break
    elif which in KINDS:
        print(json.dumps(machine.contended(which)))
    else:
        operations = dict(undefined_cases())[which]
        print(json.dumps({"undefined": which, "operations": operations, **machine.steps(operations)}))
    sys.stdout.flush()
    os._exit(0)  # The function os._exit() does not wait for a lost context.


def rows_of(cubin: str, which: str, begin: int = 0) -> list[dict]:
    """Return the rows of a separate process, and the reason if the script ended the process."""
    nothing = {"undefined": which, "operations": []}
    if time.monotonic() > _END:
        return [{**nothing, "ended": "not begun: the time was up"}]
    command = [sys.executable, __file__, "work", cubin, which, str(begin)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        output, ended = child.stdout, child.stderr.strip()[-300:] if child.returncode else ""
    except subprocess.TimeoutExpired as error:
        output, ended = (error.stdout or b"").decode(), "hang"
    rows = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    return [*rows, {**nothing, "ended": ended}] if ended or not rows else rows


def defined(cubin: str) -> list[dict]:
    """Return the defined cases. After a case that ends its process, another process continues with the next case."""
    rows, count = rows_of(cubin, "defined"), len(list(cases()))
    while len(rows) - 1 < count and time.monotonic() < _END:
        rows += rows_of(cubin, "defined", len(rows) - 1)
    return rows


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file, ThreadPoolExecutor(AT_ONCE) as pool:
        file.write(compiled())
        file.flush()
        known = pool.submit(defined, file.name)
        others = pool.map(lambda which: rows_of(file.name, which), [*KINDS, *(name for name, _ in undefined_cases())])
        rows = [*known.result(), *(row for found in others for row in found)]
    write(sys.argv[1], rows)
    for row in rows:
        if "case" not in row or "ended" in row:
            print({key: value for key, value in row.items() if key != "operations"}, flush=True)
    return None


if __name__ == "__main__":
    main()
