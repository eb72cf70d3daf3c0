"""pipeline.cuh: it compiles, in every size, to the instructions that it says, and its ring turns as it should."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .ptx_interpreter import execute, trace
from .test_header import HEADER, TARGETS, cubin, ptx

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


def test_pipeline_is_compiled_whole():
    """Each member function of pipeline.cuh is called above: a template that is not instantiated is not compiled."""
    text = HEADER.with_name("pipeline.cuh").read_text()
    defined = set(re.findall(r"^ *__device__ (?:constexpr )?[\w:&<> ]+?[ &](\w+)\(", text, re.M))
    assert defined == {"next", "init", "acquire", "wait", "release"}
    assert defined <= set(re.findall(r"\w+", PIPELINE_STATEMENTS))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stage_walks_the_ring(stages):
    """Turn i is in place i % stages, and its parity is that of the round i // stages, decided by the compiler."""
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


RING = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(Pipeline<{stages}>* pipeline, char* tile, char* memory, int role, unsigned consumers,
                                  int tiles) {{
    asm volatile("" : "+l"(pipeline), "+l"(tile));   // the compiler knows that no parameter points to shared memory
    Stage<{stages}> at;
    if (role == 0) pipeline->init(consumers);
    else if (role == 1)
        for (int i = 0; i < tiles; ++i, at.next())
            load_bulk(tile + {bytes} * at.index, memory + {bytes} * i, {bytes}, pipeline->acquire(at, {bytes}));
    else
        for (int i = 0; i < tiles; ++i, at.next()) {{
            pipeline->wait(at);
            store_bulk(memory + {bytes} * i, tile + {bytes} * at.index, {bytes});
            pipeline->release(at);
        }}
}}
"""
INIT, PRODUCER, CONSUMER = range(3)
STAGES = (1, 2, 3, 5)
TILE_BYTES = 256
PIPELINE_AT, TILES_AT, MEMORY_AT = 4096, 8192, 1 << 20
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"


@cache
def ring(stages: int) -> str:
    """The PTX of a kernel of which each thread has one role: together they copy tiles to where they came from."""
    return ptx(RING.format(stages=stages, bytes=TILE_BYTES))


def arguments(role: int, consumers: int, tiles: int) -> tuple[int, ...]:
    return PIPELINE_AT, TILES_AT, MEMORY_AT, role, consumers, tiles


@pytest.mark.parametrize("stages", STAGES)
def test_pipeline_is_its_instructions(stages):
    """Which barrier each role waits for and arrives at, with which parity, for every place of two rounds and more."""
    full = [f"[{PIPELINE_AT + 8 * i}]" for i in range(stages)]
    empty = [f"[{PIPELINE_AT + 8 * (stages + i)}]" for i in range(stages)]
    turns = [
        (i % stages, i // stages % 2, f"[{MEMORY_AT + TILE_BYTES * i}]", f"[{TILES_AT + TILE_BYTES * (i % stages)}]")
        for i in range(2 * stages + 1)
    ]

    def in_turn(lines):
        return [line for turn in turns for line in lines(*turn)]

    init = [line for i in range(stages) for line in (f"{full[i]}, 1", f"{empty[i]}, 64")]
    expected = {
        INIT: [*(f"mbarrier.init.shared::cta.b64 {line}" for line in init), "fence.mbarrier_init.release.cluster"],
        PRODUCER: in_turn(
            lambda place, parity, memory, tile: (
                f"mbarrier.try_wait.parity.shared::cta.b64 {empty[place]}, {1 - parity}",
                f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {full[place]}, {TILE_BYTES}",
                f"{LOAD} {tile}, {memory}, {TILE_BYTES}, {full[place]}",
            )
        ),
        CONSUMER: in_turn(
            lambda place, parity, memory, tile: (
                f"mbarrier.try_wait.parity.shared::cta.b64 {full[place]}, {parity}",
                f"{STORE} {memory}, {tile}, {TILE_BYTES}",
                f"mbarrier.arrive.shared::cta.b64 _, {empty[place]}",
            )
        ),
    }
    assert {role: trace(ring(stages), arguments(role, 64, len(turns))) for role in expected} == expected


@dataclass
class Mbarrier:
    """PTX ISA, "mbarrier": a phase completes when no arrival and no byte is pending."""

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
    """Threads that step in any order, barriers, and tiles that arrive at any time after their load began."""

    def __init__(self, stages: int, consumers: int, tiles: int):
        self.consumers = consumers
        self.barriers: dict[str, Mbarrier] = {}
        self.tiles: dict[str, str] = {}  # what lies in a stage, by addresses
        self.unread: Counter[str] = Counter()  # how many consumers have yet to read a stage
        self.copies: list[tuple[str, str, str]] = []  # tile, memory and barrier of those under way
        self.stored: list[str] = []
        for opcode, operands in execute(ring(stages), arguments(INIT, consumers, tiles)):
            self.effect(opcode, operands)
        roles = [PRODUCER] + [CONSUMER] * consumers
        self.running = [execute(ring(stages), arguments(role, consumers, tiles)) for role in roles]
        self.answers: dict[Generator, int | None] = dict.fromkeys(self.running)

    def step(self, chosen: int) -> None:
        """One effect of one thread, or the end of a copy."""
        which = chosen % (len(self.running) + bool(self.copies))
        if which == len(self.running):
            tile, memory, barrier = self.copies.pop(chosen % len(self.copies))
            self.tiles[tile] = memory
            self.barriers[barrier].change(tx_bytes=-TILE_BYTES)
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
            case ["mbarrier", "arrive", _], (_, barrier):
                self.barriers[barrier].change(1)
            case _, (tile, memory, _, barrier) if opcode == LOAD:
                assert not self.unread[tile], f"{memory} is loaded over a tile that is still read"
                self.unread[tile] = self.consumers
                self.copies.append((tile, memory, barrier))
            case _, (memory, tile, _) if opcode == STORE:
                assert self.tiles.get(tile) == memory
                self.unread[tile] -= 1
                self.stored.append(memory)
            case _:
                assert opcode == "fence.mbarrier_init.release.cluster"
        return None


@given(st.sampled_from(STAGES), st.integers(1, 3), st.integers(0, 11), st.integers(0, 1 << 32))
def test_every_consumer_reads_every_tile(stages, consumers, tiles, seed):
    """Whatever the order in which threads and copies go on: no tile is read early or overwritten, and all end."""
    random = Random(seed)  # fair, as the hardware is: nobody is passed over for ever
    cta = Cta(stages, consumers, tiles)
    for _ in range(2_000):  # four times what is needed
        if not cta.running and not cta.copies:
            break
        cta.step(random.randrange(1 << 20))
    assert not cta.running, "deadlock"
    assert Counter(cta.stored) == {f"[{MEMORY_AT + TILE_BYTES * i}]": consumers for i in range(tiles)}
