"""Tests of pipeline.cuh, whose pipelines compile in every size, and whose functions are the documented instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import simulate
from tests.include._header import TARGETS, cubin, defined_in, ptx, words
from tests.support.ptx_interpreter import execute, trace

PIPELINE = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* out, int tiles) {{
    __shared__ alignas(128) float tile[{stages}][64];
    __shared__ Pipeline<{stages}> pipeline;
    Stage<{stages}> at;
    {statements}
}}
"""
PIPELINE_STATEMENTS = """
    if (threadIdx.x == 0) pipeline.init(64);
    __syncthreads();
    if (threadIdx.x == 64) {
        for (int i = 0; i < tiles; ++i, at.next())
            load(tile[at.index], map, pipeline.acquire(at, sizeof(tile[0])), Coordinates{64 * i});
    } else {
        for (int i = 0; i < tiles; ++i, at.next()) {
            pipeline.wait(at);
            out[64 * i + threadIdx.x] = tile[at.index][threadIdx.x];
            pipeline.release(at);
        }
    }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
def test_pipeline_compiles(stages, target):
    assert cubin(PIPELINE.format(stages=stages, statements=PIPELINE_STATEMENTS), target).startswith(b"\x7fELF")


CLUSTER_STATEMENTS = """
    if (threadIdx.x == 0) pipeline.init(64, 2);
    cluster_sync();
    bool is_free = pipeline.try_acquire(at), is_full = pipeline.try_wait(at);
    pipeline.acquire(at).arrive();
    load(tile[at.index], map, pipeline.acquire(at, 64, is_free), Coordinates{64});
    load(tile[at.index], map, pipeline.acquire_cluster(at, 64), Coordinates{64});
    pipeline.wait(at, is_full);
    pipeline.release(at, tiles);
    pipeline.release_generic(at, tiles);
    pipeline.release_async_read(at);
    pipeline.release_async_read(at, tiles);
    pipeline.drain(at);
"""


@pytest.mark.parametrize("target", TARGETS)
def test_parts_for_clusters_and_several_producers_compile(target):
    assert cubin(PIPELINE.format(stages=3, statements=CLUSTER_STATEMENTS), target).startswith(b"\x7fELF")


def test_every_function_of_the_pipeline_is_compiled():
    """The kernels of this module call each member function of pipeline.cuh, because the compiler skips a template
    without an instance."""
    defined = defined_in("pipeline.cuh") - {"together"}
    assert defined == {"next", "init", "acquire", "try_acquire", "acquire_cluster", "drain", "wait", "try_wait"} | {
        "release", "release_generic", "release_async_read"
    }  # fmt: skip
    assert defined <= words([PIPELINE_STATEMENTS, CLUSTER_STATEMENTS])


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stage_walks_the_ring(stages):
    """Iteration i of a pipeline is in stage i % stages, with the parity of round i // stages."""
    walk = """
__device__ constexpr bool agrees() {{
    Stage<{stages}> at;
    for (int i = 0; i < 4 * {stages} + 1; ++i, at.next())
        if (at.index != i % {stages} || at.parity != i / {stages} % {rounds}) return false;
    return true;
}}
static_assert(agrees());"""
    source = "#include <cuda_tma/pipeline.cuh>\nusing namespace cuda_tma;\n" + walk
    cubin(source.format(stages=stages, rounds=2), "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.format(stages=stages, rounds=3), "sm_90a")


# Each producer loads a part of each tile. In the model, a store of a consumer stands for all reads of a tile, including
# ordinary loads.
RING = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(Pipeline<{stages}>* pipeline, char* tile, char* memory, int role, unsigned consumers,
                                  int tiles, int producers, int part) {{
    asm volatile("" : "+l"(pipeline), "+l"(tile));   // hides that no parameter points to shared memory
    Stage<{stages}> at;
    const int bytes = {bytes} >> producers - 1, first = bytes * part;
    if (role == 0) pipeline->init(consumers, producers);
    else if (role == 1) {{
        for (int i = 0; i < tiles; ++i, at.next())
            load_bulk(tile + {bytes} * at.index + first, memory + {bytes} * i + first, bytes,
                      pipeline->acquire(at, bytes));
        pipeline->drain(at);
    }} else if (role == 2)
        for (int i = 0; i < tiles; ++i, at.next()) {{
            const bool is_free = pipeline->try_acquire(at);
            Barrier& full = pipeline->acquire(at, bytes, is_free);
            load_bulk(tile + {bytes} * at.index + first, memory + {bytes} * i + first, bytes, full);
        }}
    else if (role == 3)
        for (int i = 0; i < tiles; ++i, at.next()) {{
            pipeline->wait(at);
            store_bulk(memory + {bytes} * i, tile + {bytes} * at.index, {bytes});
            commit_group();
            wait_group_read();
            pipeline->release_async_read(at);
        }}
    else
        for (int i = 0; i < tiles; ++i, at.next()) {{
            pipeline->wait(at, pipeline->try_wait(at));
            store_bulk(memory + {bytes} * i, tile + {bytes} * at.index, {bytes});
            pipeline->release(at);
        }}
}}
"""
INIT, PRODUCER, ASKING_PRODUCER, ASYNC_CONSUMER, CONSUMER = range(5)
STAGES = (1, 2, 3, 5)
TILE_BYTES = 256
PIPELINE_AT, TILES_AT, MEMORY_AT = 4096, 8192, 1 << 20
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
TRY_WAIT = "mbarrier.try_wait.parity.shared::cta.b64"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _,"
STORED = ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group.read 0")
FENCE = ("bar.warp.sync 1", "fence.proxy.async.shared::cta")


@cache
def ring(stages: int) -> str:
    """Return the PTX of a kernel in which each thread has one role of the pipeline. The threads load tiles, and store
    the tiles to global memory."""
    return ptx(RING.format(stages=stages, bytes=TILE_BYTES))


def arguments(role: int, consumers: int, tiles: int, producers: int = 1, part: int = 0) -> tuple[int, ...]:
    return PIPELINE_AT, TILES_AT, MEMORY_AT, role, consumers, tiles, producers, part


@pytest.mark.parametrize("stages", STAGES)
def test_pipeline_is_its_instructions(stages):
    """The PTX of a pipeline contains the waits and arrivals of each role, with the right barriers and parities, for
    more than two rounds."""
    full = [f"[{PIPELINE_AT + 8 * i}]" for i in range(stages)]
    empty = [f"[{PIPELINE_AT + 8 * (stages + i)}]" for i in range(stages)]
    turns = [
        (i % stages, i // stages % 2, f"[{MEMORY_AT + TILE_BYTES * i}]", f"[{TILES_AT + TILE_BYTES * (i % stages)}]")
        for i in range(2 * stages + 1)
    ]
    after = [(i % stages, i // stages % 2) for i in range(len(turns), len(turns) + stages)]

    def in_turn(lines):
        return [line for turn in turns for line in lines(*turn)]

    def produced(place, parity, memory, tile):
        return (
            f"{TRY_WAIT} {empty[place]}, {1 - parity}",
            f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {full[place]}, {TILE_BYTES}",
            f"{LOAD} {tile}, {memory}, {TILE_BYTES}, {full[place]}",
        )

    def consumed(*released):
        return lambda place, parity, memory, tile: (
            f"{TRY_WAIT} {full[place]}, {parity}",
            f"{STORE} {memory}, {tile}, {TILE_BYTES}",
            *(line.format(empty[place]) for line in released),
        )

    init = [line for i in range(stages) for line in (f"{full[i]}, 1", f"{empty[i]}, 64")]
    drained = [f"{TRY_WAIT} {empty[place]}, {1 - parity}" for place, parity in after]
    expected = {
        INIT: [*(f"mbarrier.init.shared::cta.b64 {line}" for line in init), "fence.mbarrier_init.release.cluster"],
        PRODUCER: in_turn(produced) + drained,
        ASKING_PRODUCER: in_turn(produced),
        ASYNC_CONSUMER: in_turn(consumed(*STORED, ARRIVE + " {}")),
        CONSUMER: in_turn(consumed(*FENCE, ARRIVE + " {}, 1")),
    }
    assert {role: trace(ring(stages), arguments(role, 64, len(turns))) for role in expected} == expected


@pytest.mark.parametrize("role", [ASKING_PRODUCER, CONSUMER])
def test_an_unsuccessful_poll_costs_a_wait(role):
    """After an unsuccessful poll of a phase, the use of the poll's token executes exactly one wait."""
    asked, *rest = trace(ring(1), arguments(role, 64, 1), answers=[0])
    assert asked.startswith(TRY_WAIT) and rest == trace(ring(1), arguments(role, 64, 1), answers=[1])[0:1] + rest[1:]
    assert rest[0] == asked and not rest[1].startswith(TRY_WAIT)


def test_cluster_forms_are_their_instructions():
    """In a cluster, a consumer releases a stage at another CTA, and a producer acquires the releases of other CTAs."""
    statements = {
        "pipeline->acquire(at);": f"{TRY_WAIT} [4120], 0",
        "pipeline->acquire_cluster(at, 64);": (
            f"{TRY_WAIT.replace('parity', 'parity.acquire.cluster')} [4120], 0;"
            " mbarrier.arrive.expect_tx.shared::cta.b64 _, [4104], 64"
        ),
        "pipeline->release(at, rank);": (
            f"{'; '.join(FENCE)};"
            " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [mapa.shared::cluster.u32(4120, 7)], 1"
        ),
        "pipeline->release_generic(at, rank);": (
            "bar.warp.sync 1;"
            " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [mapa.shared::cluster.u32(4120, 7)], 1"
        ),
        "pipeline->release_async_read(at, rank);": (
            "mbarrier.arrive.shared::cluster.b64 _, [mapa.shared::cluster.u32(4120, 7)]"
        ),
        "pipeline->init(3, 2);": "; ".join(
            [f"mbarrier.init.shared::cta.b64 [{4096 + 8 * i}], {2 + i // 2}" for i in (0, 2, 1, 3)]
            + ["fence.mbarrier_init.release.cluster"]
        ),
    }
    source = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(Pipeline<2>* pipeline, unsigned rank) {
    asm volatile("" : "+l"(pipeline));
    Stage<2> at; at.next(); at.next(); at.next();
    STATEMENT
}"""
    for statement, expected in statements.items():
        assert "; ".join(trace(ptx(source.replace("STATEMENT", statement)), (4096, 7))) == expected


MEETING = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(unsigned* passed) {
    __shared__ Pipeline<3> pipeline;
    if (threadIdx.x == 0) {
        pipeline.empty[0].init(20);
        pipeline.empty[1].init(12);
        fence_barrier_init();
    }
    __syncthreads();
    Stage<3> at;
    if (threadIdx.x >= 20) at.next();
    pipeline.release(at);
    pipeline.empty[at.index].wait(0);
    passed[threadIdx.x] = at.index;
}"""


def test_threads_at_different_stages_release_their_own_stage():
    """Threads of a diverged warp may be at different stages. The first thread at each stage arrives for all threads at
    the same stage."""
    gpu, passed = simulate.Device(), np.full(32, 9, np.uint32)
    report = gpu.launch(simulate.Config(1, 32), gpu.compile(MEETING, "kernel"), passed)
    assert report.findings == () and passed.tolist() == [0] * 20 + [1] * 12


@dataclass
class Mbarrier:
    """A model of an mbarrier, whose phase completes when no arrival and no byte is pending (PTX ISA, "mbarrier")."""

    arrivals: int
    pending: int = field(init=False)
    tx_bytes: int = 0
    phase: int = 0

    def __post_init__(self):
        self.pending = self.arrivals

    def change(self, arrived: int = 0, tx_bytes: int = 0) -> None:
        assert self.pending >= arrived, "more arrivals than a phase has"
        self.pending -= arrived
        self.tx_bytes += tx_bytes
        if self.pending == self.tx_bytes == 0:
            self.phase, self.pending = self.phase + 1, self.arrivals

    def completed(self, parity: int) -> int:
        return int(self.phase % 2 != parity)


class Cta:
    """A model of a CTA with threads that run in any order, with barriers, and with tiles that arrive at any time after
    the start of their load."""

    def __init__(self, stages: int, tiles: int, producers: list[int], consumers: list[int]):
        self.consumers = len(consumers)
        self.part_bytes = TILE_BYTES // len(producers)
        self.barriers: dict[str, Mbarrier] = {}
        # The dictionary maps the address of each part in a stage to the address of its data in global memory.
        self.parts: dict[int, int] = {}
        # The counter contains, for each part, the number of consumers that have not read the part.
        self.unread: Counter[int] = Counter()
        self.copies: list[tuple[int, int, str]] = []
        self.stored: list[int] = []
        text, shape = ring(stages), (len(consumers), tiles, len(producers))
        for opcode, operands in execute(text, arguments(INIT, *shape)):
            self.effect(opcode, operands)
        roles = [*((role, part) for part, role in enumerate(producers)), *((role, 0) for role in consumers)]
        self.running = [execute(text, arguments(role, *shape, part)) for role, part in roles]
        self.answers: dict[Generator, int | None] = dict.fromkeys(self.running)

    def step(self, chosen: int) -> None:
        """Execute one step of a thread of the model, or complete a copy."""
        which = chosen % (len(self.running) + bool(self.copies))
        if which == len(self.running):
            part, memory, barrier = self.copies.pop(chosen % len(self.copies))
            self.parts[part] = memory
            self.barriers[barrier].change(tx_bytes=-self.part_bytes)
            return
        thread = self.running[which]
        try:
            self.answers[thread] = self.effect(*thread.send(self.answers[thread]))
        except StopIteration:
            self.running.remove(thread)

    def effect(self, opcode: str, operands: tuple) -> int | None:
        match opcode.split(".")[:3], operands:
            case ["mbarrier", "init", _], (barrier, arrivals):
                self.barriers[barrier] = Mbarrier(arrivals)
            case ["mbarrier", "try_wait", _], (barrier, parity):
                return self.barriers[barrier].completed(parity)
            case ["mbarrier", "arrive", "expect_tx"], (_, barrier, tx_bytes):
                self.barriers[barrier].change(1, tx_bytes)
            case ["mbarrier", "arrive", _], (_, barrier, *_):
                self.barriers[barrier].change(1)
            case _, (part, memory, _, barrier) if opcode == LOAD:
                self.load(int(part[1:-1]), int(memory[1:-1]), barrier)
            case _, (memory, tile, _) if opcode == STORE:
                self.store(int(memory[1:-1]), int(tile[1:-1]))
            case _:
                assert f"{opcode} {', '.join(map(str, operands))}".strip() in {
                    *FENCE,
                    *STORED,
                    "fence.mbarrier_init.release.cluster",
                }
        return None

    def load(self, part: int, memory: int, barrier: str) -> None:
        assert not self.unread[part], f"{memory} is loaded over a tile that is still read"
        self.unread[part] = self.consumers
        self.copies.append((part, memory, barrier))

    def store(self, memory: int, tile: int) -> None:
        for first in range(0, TILE_BYTES, self.part_bytes):
            assert self.parts.get(tile + first) == memory + first
            self.unread[tile + first] -= 1
        self.stored.append(memory)


@given(
    st.sampled_from(STAGES),
    st.integers(0, 11),
    st.lists(st.sampled_from([PRODUCER, ASKING_PRODUCER]), min_size=1, max_size=2),
    st.lists(st.sampled_from([CONSUMER, ASYNC_CONSUMER]), min_size=1, max_size=3),
    st.integers(0, 1 << 32),
)
def test_every_consumer_reads_every_tile(stages, tiles, producers, consumers, seed):
    """In any order of threads and copies, each consumer reads every tile after the tile's load and before the next load
    into its stage."""
    random = Random(seed)
    cta = Cta(stages, tiles, producers, consumers)
    for _ in range(5_000):
        if not cta.running and not cta.copies:
            break
        cta.step(random.randrange(1 << 20))
    assert not cta.running, "deadlock"
    assert Counter(cta.stored) == {MEMORY_AT + TILE_BYTES * i: len(consumers) for i in range(tiles)}


def test_drain_waits_for_the_last_release():
    """The producer ends only after the consumer has released all loaded stages, although the producer loads no more
    tiles."""
    cta = Cta(3, 2, [PRODUCER], [CONSUMER])
    producer, consumer = cta.running
    while producer in cta.running and len(cta.copies) < 2:
        cta.step(0)
    for _ in range(50):
        cta.step(0)
    assert producer in cta.running
    while consumer in cta.running:
        cta.step(len(cta.running) if cta.copies else cta.running.index(consumer))
    while cta.running:
        cta.step(0)
