"""Record the 64 bits of an mbarrier in every state, on a GPU of compute capability 9.0.

    python tools/record_barriers.py barriers_sm90.jsonl.gz      # about 20 s, most of it to start processes
    python tools/replay_barriers.py barriers_sm90.jsonl.gz      # the layout that the words show; needs no GPU

Needs ``cuda.core`` and ``cuda_tma`` (installed, or ``PYTHONPATH=.``). Each row of the output is a case of
``barrier_cases.py``: its ``operations``; the ``words`` that one thread reads after each, two microseconds later;
``early`` of those steps whose word was another at once; what each operation ``returned`` (a state, or whether a phase
has completed). A case that PTX leaves undefined has a process of its own, and ``ended`` if that had no words: the CUDA
error, or a hang. Two more kinds of rows: ``contended``, words that a thread read while others used the barrier, as how
many there were, their bits in common (``all``) and together (``any``); and the first row, ``device``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from barrier_cases import OPERATIONS, REMOTE, cases, undefined_cases
from recordings import write

SECONDS = 60

_OPERANDS = '"+l"(result) : "r"(at), "r"(number), "r"(smem), "l"(memory) : "memory"'
_CASE = '    case {number}: asm volatile("{ptx}" : OPERANDS); break;'.replace("OPERANDS", _OPERANDS)
_STEPS = r"""
struct Operation { unsigned name, number; };
struct Seen { unsigned long long early, word, returned; };

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ unsigned long long read(unsigned at) {
    unsigned long long word;
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(word) : "r"(at) : "memory");
    return word;
}
__device__ void meet() { asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }
__device__ unsigned long long run(Operation operation, unsigned at, unsigned smem, const void* memory) {
    unsigned long long result = 0;
    const unsigned number = operation.number;
    switch (operation.name) {
CASES
    }
    return result;
}

// One thread of each CTA: that of the second does what is remote.
extern "C" __global__ __cluster_dims__(2) void steps(const Operation* operations, unsigned count, unsigned first_remote,
                                                     const void* memory, Seen* seen) {
    __shared__ alignas(128) unsigned char tile[4096];
    __shared__ unsigned long long barrier;
    const unsigned at = address(&barrier);
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(at));
    for (unsigned i = 0; i < count; ++i) {
        const bool is_remote = operations[i].name >= first_remote;
        meet();
        if (blockIdx.x == is_remote) {
            const unsigned long long returned = run(operations[i], is_remote ? remote : at, address(tile), memory);
            if (!is_remote) seen[i].early = read(at);
            seen[i].returned = returned;
        }
        meet();
        if (blockIdx.x == 0) {
            __nanosleep(2000);
            seen[i].word = read(at);
            if (is_remote) seen[i].early = seen[i].word;
        }
    }
    meet();
}

// Warp 0 reads while the others use the barrier: they arrive, expect and complete bytes, or wait.
extern "C" __global__ void contend(unsigned kind, unsigned reads, unsigned long long* words) {
    __shared__ unsigned long long barrier;
    const unsigned at = address(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(0xFFFFF) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) for (unsigned i = 0; i < reads; ++i) words[i] = read(at);
    if (threadIdx.x < 32) return;
    for (unsigned i = 0; i < (kind == 2 ? 20 : 2000); ++i) {
        if (kind == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
        if (kind == 1) {
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at) : "memory");
            asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at) : "memory");
        }
        if (kind == 2)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0, 20000; }"
                         :: "r"(at) : "memory");
    }
}
"""
_NAMES = list(OPERATIONS)
_FIRST_REMOTE = next(number for number, name in enumerate(_NAMES) if name.startswith(REMOTE))
SOURCE = _STEPS.replace(
    "CASES", "\n".join(_CASE.format(number=i, ptx=ptx) for i, ptx in enumerate(OPERATIONS.values()))
)
KINDS = ("arrivals", "bytes", "waits")


class Machine:
    """A GPU with the kernels."""

    def __init__(self) -> None:
        from cuda.core import Program, ProgramOptions

        import cuda_tma

        self.device = cuda_tma.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        program = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"sm_{self.device.arch}a"))
        self.kernels = program.compile("cubin")
        self.memory = self.device.allocate(1 << 20, stream=self.stream)

    def run(self, name: str, config: Any, arguments: tuple, size_bytes: int) -> Any:
        """What the kernel wrote, as words of 64 bits; its last argument is where."""
        import numpy as np
        from cuda.bindings import driver

        import cuda_tma

        found = self.device.allocate(size_bytes, stream=self.stream)
        cuda_tma.launch(self.stream, config, self.kernels.get_kernel(name), *arguments, found)
        self.stream.sync()
        words = np.empty(size_bytes // 8, np.uint64)
        (error,) = driver.cuMemcpyDtoH(words.ctypes.data, int(found.handle), size_bytes)
        assert not error, error
        return words

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
        words = self.run("steps", LaunchConfig(grid=1, cluster=2, block=1), arguments, 24 * len(codes))
        early, settled, returned = ([f"{word:016x}" for word in words[i::3].tolist()] for i in range(3))
        found: dict[str, Any] = {"words": settled}
        if differ := {str(i): a for i, (a, b) in enumerate(zip(early, settled, strict=True)) if a != b}:
            found["early"] = differ
        return found | {"returned": {str(i): word for i, word in enumerate(returned) if int(word, 16)}}

    def contended(self, kind: str) -> dict:
        import numpy as np
        from cuda.core import LaunchConfig

        reads = 4096
        numbers = np.uint32(KINDS.index(kind)), np.uint32(reads)
        words = self.run("contend", LaunchConfig(grid=1, block=288), numbers, 8 * reads)
        summary = {"all": np.bitwise_and.reduce(words), "any": np.bitwise_or.reduce(words)}
        odd = np.unique(words[words & np.uint64(1) == 1])
        return {
            "contended": kind,
            "reads": reads,
            "different": len(np.unique(words)),
            "with_bit_0": int((words & np.uint64(1)).sum()),
            **{name: f"{int(word):016x}" for name, word in summary.items()},
            "some": [f"{word:016x}" for word in [*odd[:8].tolist(), *np.unique(words)[:8].tolist()]],
        }


def driver_version() -> dict[str, str]:
    """Of the kernel's driver, which only its own tool tells."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return {"driver": subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]}
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {}


def work(which: str) -> None:
    """All defined cases, one that is not, or what is contended: a row a line."""
    machine = Machine()
    if which == "defined":
        print(json.dumps({"device": machine.device.name, "compute_capability": machine.device.arch} | driver_version()))
        for name, operations in cases():
            print(json.dumps({"case": name, "operations": operations, **machine.steps(operations)}), flush=True)
    elif which in KINDS:
        print(json.dumps(machine.contended(which)))
    else:
        operations = dict(undefined_cases())[which]
        print(json.dumps({"undefined": which, "operations": operations, **machine.steps(operations)}))


def rows_of(which: str) -> list[dict]:
    """What a process of its own prints; how it ended, if it did not end well."""
    command = [sys.executable, __file__, "work", which]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS if which == "defined" else 20)
        rows, ended = [json.loads(line) for line in child.stdout.splitlines()], child.stderr.strip().splitlines()[-1:]
    except subprocess.TimeoutExpired:
        rows, ended = [], ["hang"]
    if rows and not (ended and child.returncode):
        return rows
    return [*rows, {"undefined": which, "operations": dict(undefined_cases()).get(which, []), "ended": " ".join(ended)}]


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2])
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    rows = [row for which in ("defined", *KINDS, *(name for name, _ in undefined_cases())) for row in rows_of(which)]
    write(sys.argv[1], rows)
    for row in rows:
        if not row.get("case", "").startswith(("drawn", "count")):
            print({key: value for key, value in row.items() if key != "operations"})
    return None


if __name__ == "__main__":
    main()
