"""Tests of the reports about kernels that do not end, on the simulator and from records of a GPU."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import cuda_tma
from cuda_tma import KernelHang, simulate
from cuda_tma._barrier_name import barrier_name
from cuda_tma._compile.nvrtc import compile_source
from cuda_tma._waits import waiters_of
from cuda_tma._watchdog import memory
from cuda_tma.barrier import Barrier, encode_barrier
from cuda_tma.hang import BarrierWait, Hang, MbarrierWait, Waiter
from tests.include._header import FOLDER

from .gpu.planted_hangs import PLANTED, ROWS, WIDTH

NAMES = [planted.name for planted in PLANTED]


# ---- on the simulator ----


@pytest.fixture(scope="module")
def gpu():
    return simulate.Device()


def launched(gpu, planted):
    values, out = np.zeros((ROWS, WIDTH), np.uint8), np.zeros(planted.cluster, np.int32)
    is_typed = planted.box_rows == ROWS
    given = values if is_typed else gpu.create_tensor_map(values, box_dim=(planted.box_rows, WIDTH))
    config = simulate.Config(grid=1, block=64, cluster=planted.cluster)
    report = gpu.launch(config, gpu.compile(planted.source, "hang"), given, out)
    return report.findings


@pytest.mark.parametrize("planted", PLANTED, ids=NAMES)
def test_the_simulator_reports_each(gpu, planted):
    """The simulator's report of a hang equals the hardware's report. The simulator also reports the copied bytes, in
    parentheses."""
    first = launched(gpu, planted)[0]
    assert first.kind == planted.finding
    if planted.ends == "fault":
        assert "CUDA_ERROR_ILLEGAL_INSTRUCTION" in first.message
        return
    told = [re.sub(r" \(came: .*\)$", "", line.strip()) for line in first.message.splitlines()]
    assert told[0] == "no thread of kernel hang can go on:"
    assert set(planted.report) <= set(told[1:])
    assert told[-1] == f"probable cause: {planted.cause}"


def test_a_kernel_with_a_watchdog_gives_the_same_report(gpu):
    """The simulator has no memory for the watchdog's report, and makes its own report of a kernel with a watchdog."""
    planted, values, out = PLANTED[0], np.zeros((ROWS, WIDTH), np.uint8), np.zeros(1, np.int32)
    kernel = gpu.compile(planted.source, "hang", defines={"CUDA_TMA_WATCHDOG_MS": 200})
    report = gpu.launch(simulate.Config(grid=1, block=64), kernel, values, out)
    assert report.errors[0].kind == planted.finding
    assert planted.report[0] in report.errors[0].message
    fixed = planted.source.replace("16384", "8192").replace("(0);  // here", "(0); named_barrier_sync<1>(64);")
    kernel = gpu.compile(fixed, "hang", defines={"CUDA_TMA_WATCHDOG_MS": 200})
    assert not gpu.launch(simulate.Config(grid=32, block=64), kernel, values, np.zeros(32, np.int32)).findings


def test_a_producer_does_not_wait_for_the_address_of_its_note(gpu):
    """In the test, all threads except the producer record that they wait for the cluster. The producer next waits for
    its first load."""
    source = """
    #include <cuda_tma/roles.cuh>
    using namespace cuda_tma;
    __device__ unsigned noted() {
        unsigned multiprocessor, warp;
        asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%warpid;" : "=r"(multiprocessor), "=r"(warp));
        return cuda_tma_watchdog.notes[multiprocessor * 64 + warp].lanes;
    }
    extern "C" __global__ void __launch_bounds__(256, 1) roles(unsigned* out) {
        in_roles<1, 24, 240>([&] { out[0] = noted(); },
                             [&] { if (threadIdx.x % 32 == 0) out[threadIdx.x / 32 + 1] = noted(); });
    }
    """
    out = np.ones(5, np.uint32)
    kernel = gpu.compile(source, "roles", defines={"CUDA_TMA_WATCHDOG_MS": 200})
    assert not gpu.launch(simulate.Config(grid=1, block=256), kernel, out).findings
    assert out.tolist() == [0, *[0xFFFFFFFF] * 4]


def test_known_copied_bytes_are_reported(gpu):
    message = launched(gpu, PLANTED[NAMES.index("too many bytes expected")])[0].message
    assert "the box of `map` delivers 8,192 (came: 8,192 by the load at hang.cu:" in message


def test_expected_and_copied_bytes_are_not_an_arrival(gpu):
    """In the report of a hang, expected and copied bytes of an mbarrier's phase do not count as an arrival."""
    planted = PLANTED[NAMES.index("too many bytes expected")]
    bodies = planted.source.replace("arrive_expect_tx(16384)", "expect_tx(8192)")
    kernel = gpu.compile(bodies, "hang")
    arrays = np.zeros((ROWS, WIDTH), np.uint8), np.zeros(1, np.int32)
    message = gpu.launch(simulate.Config(grid=1, block=64), kernel, *arrays).errors[0].message
    assert "parity 0: its one arrival is missing (came: 8,192 by the load at hang.cu:" in message
    assert message.endswith("(expect_tx() by itself is not an arrival)")


def test_each_planted_kernel_compiles_with_a_watchdog():
    for planted in PLANTED:
        compiled = compile_source(planted.source, "hang", target="sm_90a", defines={"CUDA_TMA_WATCHDOG_MS": 200})
        assert compiled.cubin and "cuda_tma_watchdog" in compiled.ptx


# ---- records of a GPU ----


def test_the_layout_is_the_header_s():
    text = (FOLDER / "watchdog.cuh").read_text()
    body = re.search(r"struct WatchdogRecord \{\n(.*?)\n\};", text, re.DOTALL)[1]
    fields = [
        name for line in body.splitlines() for name in re.findall(r"(\w+)(?:\[\d+\])?[,;]", line.partition("//")[0])
    ]
    assert fields == list(memory.RECORD.names)
    assert memory.RECORD.itemsize == 128 and memory.HEAD.itemsize == 128 and memory.NOTE.itemsize == 32
    assert f"notes[{memory.NOTES // 64} * 64]" in text
    source = "#define CUDA_TMA_WATCHDOG_MS 1\n#include <cuda_tma/tma.cuh>\nusing namespace cuda_tma;\n"
    sizes = {"record": "sizeof(WatchdogRecord)", "note": "sizeof(WatchdogNote)", "head": "sizeof(WatchdogBuffer)"}
    sizes |= {"notes": "__builtin_offsetof(Watchdog, notes)", "hung": "__builtin_offsetof(Watchdog, hung_grid)"}
    compiled = compile_source(f"{source}__global__ void k() {{}}", "k", target="compute_90", constants=sizes)
    assert compiled.constants == {"record": 128, "note": 32, "head": 256, "notes": memory.NOTES_OFFSET, "hung": 16}


def record(**fields):
    """Return a watchdog record of a warp that waits at line 2 for an mbarrier with the name of a ring."""
    made = np.zeros(1, memory.RECORD)
    given = {"module": 7, "grid": 1, "lanes": 0xFFFFFFFF, "line": 2, "file": b"k.cu", "is_whole": 1, "address": 0x408}
    for name, value in (given | fields).items():
        made[name] = value
    return made


WATCHED = memory.Watched("gemm", "k.cu", ("", "shared.ring.wait(at);"), {"a_map": 32768, "b_map": 16384})
SHORT = encode_barrier(Barrier(1, 0, 1, 16384))


def test_records_become_a_report():
    """The records of a GPU become a report with the documented sentence."""
    of_ring = {"word": SHORT, "parity": 1, "stage_of": 1, "stage": 2, "expected_bytes": 49152, "block": (3, 0, 0)}
    records = np.concatenate([record(warp=warp, **of_ring) for warp in (2, 0, 3, 1)])
    (hang,) = memory.hangs_of(records, {7: WATCHED})
    assert str(hang) == (
        "no thread of kernel gemm can go on:\n"
        "  block (3, 0): warps 0 to 3 wait at k.cu:2 for stage 2 of `shared.ring.full`, parity 1: its one arrival "
        "came, 16,384 of 49,152 bytes are missing: the box of `b_map` delivers 16,384\n"
        "probable cause: expect_tx announces more bytes than the copies deliver: a copy is missing, or its box "
        "is smaller"
    )


def test_an_unknown_source_has_addresses():
    (hang,) = memory.hangs_of(record(word=SHORT, file=b"other.cuh", stage_of=2, lanes=0b101), {7: WATCHED})
    assert "block (0, 0): threads 0, 2 wait at other.cuh:2 for stage 0 of the empty mbarrier at 0x408 of" in str(hang)
    (hang,) = memory.hangs_of(record(word=SHORT, line=0, file=b"", lanes=1), {})
    assert "  block (0, 0): thread 0 waits for the mbarrier at 0x408 of shared memory, parity 0: its one" in str(hang)


def test_launches_are_distinguished_and_half_a_record_is_ignored():
    records = np.concatenate([record(grid=2, word=SHORT), record(grid=1, word=SHORT), record(grid=2, is_whole=0)])
    first, second = memory.hangs_of(records, {7: WATCHED}, ("the context is lost",))
    assert len(first.waiters) == len(second.waiters) == 1
    assert str(first).endswith("\nthe context is lost")
    assert memory.hangs_of(records[:0], {}) == ()


def test_expected_bytes_of_several_arrivals_are_unknown():
    (hang,) = memory.hangs_of(record(word=encode_barrier(Barrier(0, 0, 2, 64)), expected_bytes=128), {7: WATCHED})
    assert "its 2 arrivals came, 64 bytes are missing" in str(hang)


def note(**fields):
    made = np.zeros(1, memory.NOTE)
    given = {"file": 9, "place": 1 << 31 | 1 << 20 | 12, "packed": 128 | 1 << 11, "lanes": 0xFFFFFFFF}
    for name, value in (given | fields).items():
        made[name] = value
    return made


def test_notes_become_a_report():
    notes = np.concatenate([note(), note(packed=128 | 2 << 11), note(place=1 << 31 | 255 << 20 | 9, packed=5 << 16)])
    hang = memory.stuck(notes, WATCHED, {9: "/far/away/k.cu"}.__getitem__, ("it still runs",))
    assert str(hang) == (
        "no thread of kernel gemm can go on:\n"
        "  block (0, 0): warps 1 to 2 wait at k.cu:12 for barrier 1 of the CTA: 64 of 128 threads are missing\n"
        "  block (0, 0, 5): warp 0 waits at k.cu:9 for the cluster's barrier: not all threads of the cluster have "
        "arrived\n"
        "probable cause: every thread in the barrier's count must reach it: check the count and the branches "
        "before it\n"
        "it still runs"
    )
    hang = memory.stuck(note(place=1 << 31 | 12, packed=0, file=0), WATCHED, str, ())
    assert "warp 0 waits for barrier 0 of the CTA: not all its threads have arrived" in str(hang)


# ---- text ----

STATES = {
    (0, 1, 1, 0, None): ("its one arrival is missing", "no thread arrived in this phase"),
    (0, 0, 1, 16, 16): ("its one arrival came, 16 of 16 bytes are missing", "no copy has delivered bytes"),
    (0, 0, 1, 16, 48): ("its one arrival came, 16 of 48 bytes are missing", "expect_tx announces more bytes"),
    (0, 0, 1, 16, None): ("its one arrival came, 16 bytes are missing", "expect_tx announces more bytes"),
    (0, 0, 1, -1600, 32): (
        "its one arrival came, 1,600 more bytes came than the 32 that were expected",
        "announces fewer bytes",
    ),
    (0, 1, 1, -16, None): (
        "its one arrival is missing, 16 more bytes came than expected",
        "no thread has called arrive_expect_tx",
    ),
    (0, 2, 4, 0, None): ("2 of its 4 arrivals are missing", "init() expects 4 arrivals in each phase, and 2 came"),
    (0, 1, 4, 0, None): ("1 of its 4 arrivals is missing", "init() expects 4 arrivals in each phase, and 3 came"),
    (0, 4, 4, 0, None): ("none of its 4 arrivals came", "no thread arrived in this phase"),
    (0, 0, 4, 16, 64): ("its 4 arrivals came, 16 of 64 bytes are missing", "expect_tx announces more bytes"),
    (0, 1, 4, 16, 64): (
        "1 of its 4 arrivals is missing, 16 bytes are missing",
        "expect_tx() by itself is not an arrival",
    ),
}


@pytest.mark.parametrize(("counts", "said"), STATES.items(), ids=str)
def test_counts_of_a_barrier(counts, said):
    *fields, expected = counts
    wait = MbarrierWait("`full`", None, 0, Barrier(*fields), expected)
    assert wait.state == said[0] and said[1] in wait.cause


def test_the_wait_that_explains_most_gives_the_cause():
    nothing = MbarrierWait("`empty`", 0, 0, Barrier(0, 1, 1, 0))
    some = MbarrierWait("`done`", None, 0, Barrier(0, 1, 2, 0))
    bytes_ = MbarrierWait("`full`", 0, 0, Barrier(0, 0, 1, 64))
    hardware = BarrierWait("barrier 1 of the CTA", "64 of 128 threads are missing")
    in_order = [bytes_, some, nothing, hardware]
    for first in range(len(in_order)):
        waits = [("k.cu:1", awaits, (0, 0, 0), {32 * at}) for at, awaits in enumerate(in_order[first:])]
        hang = Hang(waiters_of(waits[::-1]))
        assert hang.cause == in_order[first].cause
        assert hang.first.awaits == in_order[first]


def test_two_threads_that_wait_for_each_other():
    sides = [MbarrierWait(f"`ring.{side}`", 1, 0, Barrier(0, 1, 1, 0)) for side in ("full", "empty")]
    waits = [("", each, (0, 0, 0), {index}) for index, each in enumerate(sides)]
    assert Hang(waiters_of(waits)).cause == (
        "each waits for the other, and neither has arrived: a stage is never released, init() counts fewer "
        "arrivals than "
        "occur, or their stages or parities are out of step"
    )
    assert "no thread arrived in this phase" in Hang(waiters_of(waits[:1])).cause


def test_equal_waits_are_reported_once():
    wait = MbarrierWait("`full`", None, 0, Barrier(0, 1, 1, 0))
    waits = [("k.cu:1", wait, (x, y, 0), {*range(64)}) for y in range(2) for x in (1, 0)]
    waits += [("k.cu:1", wait, (5, 0, 0), {*range(33)}), ("k.cu:2", wait, (6, 0, 0), {64, 66, 68, 70, 72})]
    text = str(Hang(waiters_of(waits)))
    assert "  blocks (0, 0) to (1, 1), 4 in all: warps 0 to 1 wait at k.cu:1 for `full`" in text
    assert "  block (5, 0): threads 0 to 32 wait at k.cu:1" in text
    assert "  block (6, 0): threads 64, 66, 68, 70, ... wait at k.cu:2" in text
    assert "  blocks (0, 0) and (1, 0): warps 0 to 1 wait at k.cu:1 for `full`" in str(Hang(waiters_of(waits[:2])))


def test_a_long_report_is_cut():
    wait = BarrierWait("the cluster's barrier", "32 threads are missing")
    waits = [(f"k.cu:{line}", wait, (0, 0, 0), {line}) for line in range(12)]
    assert str(Hang(waiters_of(waits))).splitlines()[-2] == "  and 4 more"


def test_no_waiting_thread_is_known():
    assert str(Hang((), limits=("the records are lost",))) == "no thread can go on:\nthe records are lost"


def test_the_error_is_copied_and_pickled():
    hang = Hang((Waiter(((0, 0, 0),), (0,), "k.cu:1", BarrierWait("barrier 0 of the CTA", "31 are missing")),), "k")
    error = KernelHang((hang,))
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(other) == str(error) == str(hang) and other.hangs == (hang,)
    assert isinstance(error, RuntimeError) and len({hang, copy.copy(hang)}) == 1


@pytest.mark.parametrize(
    ("line", "side", "name"),
    [
        ("full.wait(0);", "", "`full`"),
        ("    if (x) shared->ring[1].wait(at);  // other.wait(1)", "full", "`shared->ring[1].full`"),
        ("Barrier& b = shared.ring.acquire(at, shared.a[0]);", "empty", "`shared.ring.empty`"),
        ("accumulate<CLUSTER>(sums, shared.ring, at, k_tiles, multiply);", "full", "`shared.ring.full`"),
        ("while (!done.try_wait(0)) continue;", "", "`done`"),
        ("a.wait(0); b.wait(0);", "", ""),
        ("WAIT(full);", "", ""),
    ],
)
def test_names_of_a_barrier_in_the_source(line, side, name):
    assert barrier_name(["", line], 2, side) == name
    assert barrier_name([], 2, side) == ""


# ---- the functions that set a deadline ----


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "500", 10**10])
def test_an_invalid_deadline(given):
    with pytest.raises(ValueError, match=r"watchdog_ms=.*; pass milliseconds, 1 to 1000000000"):
        cuda_tma.compile('extern "C" __global__ void k() {}', "k", watchdog_ms=given)


def test_a_deadline_that_is_set_twice():
    """The package refuses two deadlines for one kernel, because it would silently ignore one of the deadlines."""
    with pytest.raises(
        ValueError, match=r"watchdog_ms=500 and defines\['CUDA_TMA_WATCHDOG_MS'\]=90 set the same macro; pass"
    ):
        cuda_tma.compile("", "k", watchdog_ms=500, defines={"CUDA_TMA_WATCHDOG_MS": 90})
