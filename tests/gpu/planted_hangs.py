"""Kernels that hang, one for each cause of a hang, with the expected reports on the simulator and on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

# The tile has 8,192 bytes.
ROWS, WIDTH = 64, 128
_HEAD = """
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;
using Window = Tile<UINT8, Box<64, 128>>;
#ifdef UNTYPED
using Map = TensorMap;
#else
using Map = TiledMap<Window>;
#endif
extern "C" __global__ void hang(const __grid_constant__ Map map, int* out) {
    __shared__ Window tiles[2];
    const unsigned thread = threadIdx.x;
    if (thread == 0) out[blockIdx.x] = 1;
"""
_ONE = """
    __shared__ Barrier full;
    if (thread == 0) {
        full.init(COUNT);
        fence_barrier_init();
    }
    __syncthreads();
"""
_RING = """
    __shared__ Pipeline<2> ring;
    if (thread == 0) ring.init(32);
    __syncthreads();
    Stage<2> at;
"""
_LOAD = "load(tiles[0], map, full, Coordinates{0, 0});"


@dataclass(frozen=True)
class Planted:
    """A kernel that hangs, by default with 64 threads in a block.

    `lines` are the lines of the report, in which {here} and {there} stand for the numbers of the marked source lines.
    `ends` is the outcome on hardware: "hang", "fault" or "never".
    """

    name: str
    body: str
    lines: tuple[str, ...]
    cause: str
    ends: str = "hang"
    cluster: int = 1
    box_rows: int = ROWS
    finding: str = "deadlock"

    @property
    def source(self) -> str:
        return ("#define UNTYPED\n" if self.box_rows != ROWS else "") + _HEAD + self.body + "}\n"

    @property
    def report(self) -> list[str]:
        """Return the expected lines of the report, with the numbers of the source lines."""
        marks = {
            mark: 1 + next(i for i, text in enumerate(self.source.splitlines()) if f"// {mark}" in text)
            for mark in ("here", "there")
            if f"// {mark}" in self.source
        }
        return [line.format(**marks) for line in self.lines]


def _one(count: str, body: str) -> str:
    return _ONE.replace("COUNT", count) + body


_WAITS = "block (0, 0): warps 0 to 1 wait at hang.cu:{here} for "
_NOTHING = (
    "no thread arrived in this phase: check the parity of the wait, and the threads that should arrive (expect_tx() by "
    "itself is not an arrival)"
)
PLANTED = (
    Planted(
        "too many bytes expected",
        _one("1", f"    if (thread == 0) {{ full.arrive_expect_tx(16384); {_LOAD} }}\n    full.wait(0);  // here\n"),
        (
            _WAITS + "`full`, parity 0: its one arrival came, 8,192 of 16,384 bytes are missing: the box of `map` "
            "delivers 8,192",
        ),
        "expect_tx announces more bytes than the copies deliver: a copy is missing, or its box is smaller",
        finding="transaction-count",
    ),
    Planted(
        "too few bytes expected",
        _one("1", f"    if (thread == 0) {{ full.arrive_expect_tx(4100); {_LOAD} }}\n    full.wait(0);  // here\n"),
        (
            _WAITS
            + "`full`, parity 0: its one arrival came, 4,092 more bytes came than the 4,100 that were expected: the "
            "box of `map` delivers 8,192",
        ),
        "expect_tx announces fewer bytes than the copies deliver: pass the sum of the copies' bytes",
        finding="transaction-count",
    ),
    Planted(
        "an arrival is missing",
        _one("2", f"    if (thread == 0) {{ full.arrive_expect_tx(8192); {_LOAD} }}\n    full.wait(0);  // here\n"),
        (_WAITS + "`full`, parity 0: 1 of its 2 arrivals is missing",),
        "init() expects 2 arrivals in each phase, and 1 came",
    ),
    Planted(
        "the wrong parity",
        _one(
            "1",
            f"    if (thread == 0) {{ full.arrive_expect_tx(8192); {_LOAD} }}\n    full.wait(0);\n"
            "    full.wait(1);  // here\n",
        ),
        (_WAITS + "`full`, parity 1: its one arrival is missing",),
        _NOTHING,
    ),
    Planted(
        "a ring out of step",
        _RING
        + """
    if (thread == 0) {
        for (int i = 0; i < 4; ++i, at.next())
            load(tiles[at.index], map, ring.acquire(at, tiles[0]), Coordinates{0, 0});  // here
    } else if (thread >= 32) {
        at.next();
        for (int i = 0; i < 4; ++i, at.next()) {
            ring.wait(at);  // there
            ring.release(at);
        }
    }
""",
        (
            "block (0, 0): thread 0 waits at hang.cu:{here} for stage 0 of `ring.empty`, parity 0: none of its 32 "
            "arrivals came",
            "block (0, 0): warp 1 waits at hang.cu:{there} for stage 0 of `ring.full`, parity 1: its one arrival is "
            "missing",
        ),
        "each waits for the other, and neither has arrived: a stage is never released, init() counts fewer "
        "arrivals than "
        "occur, or their stages or parities are out of step",
    ),
    Planted(
        "a partner in the cluster does not come",
        """
    __shared__ Barrier both;
    if (thread == 0) {
        both.init(2);
        fence_barrier_init();
    }
    __syncthreads();
    cluster_sync();
    if (thread == 0) {
        both.arrive_at(cluster_cta_rank());
        if (cluster_cta_rank() == 0) both.arrive_at(1);
    }
    if (thread < 32) both.wait_cluster(0);  // here
    __syncthreads();
    cluster_sync();
""",
        ("block (0, 0): warp 0 waits at hang.cu:{here} for `both`, parity 0: 1 of its 2 arrivals is missing",),
        "init() expects 2 arrivals in each phase, and 1 came",
        cluster=2,
    ),
    Planted(
        "a dropped commit",
        _RING
        + """
    if (thread == 0) {
        ring.acquire(at);
        reinterpret_cast<char&>(tiles[0]) = 1;   // no full.arrive() follows
    } else if (thread >= 32) {
        ring.wait(at);  // here
    }
""",
        (
            "block (0, 0): warp 1 waits at hang.cu:{here} for stage 0 of `ring.full`, parity 0: its one arrival is "
            "missing",
        ),
        _NOTHING,
    ),
    Planted(
        "a map of a smaller box",
        _one(
            "1",
            "    if (thread == 0) { full.arrive_expect_tx(8192); load(&tiles[0], map, full, Coordinates{0, 0}); }\n"
            "    full.wait(0);  // here\n",
        ),
        (_WAITS + "`full`, parity 0: its one arrival came, 4,096 of 8,192 bytes are missing",),
        "expect_tx announces more bytes than the copies deliver: a copy is missing, or its box is smaller",
        box_rows=32,
        finding="transaction-count",
    ),
    Planted(
        "a wrong count at init",
        _one(
            "blockDim.x",
            f"    if (thread == 0) {{ full.arrive_expect_tx(8192); {_LOAD} }}\n    full.wait(0);  // here\n",
        ),
        (_WAITS + "`full`, parity 0: 63 of its 64 arrivals are missing",),
        "init() expects 64 arrivals in each phase, and 1 came",
    ),
    Planted(
        "a stage is never released",
        _RING
        + """
    if (thread == 0) {
        for (int i = 0; i < 3; ++i, at.next())
            load(tiles[at.index], map, ring.acquire(at, tiles[0]), Coordinates{0, 0});  // here
    } else if (thread >= 32) {
        ring.wait(at);
    }
""",
        (
            "block (0, 0): thread 0 waits at hang.cu:{here} for stage 0 of `ring.empty`, parity 0: none of its 32 "
            "arrivals came",
        ),
        _NOTHING,
    ),
    Planted(
        "a copy that names another barrier",
        """
    __shared__ Barrier full[2];
    if (thread == 0) {
        full[0].init(1);
        full[1].init(1);
        fence_barrier_init();
    }
    __syncthreads();
    if (thread == 0) {
        full[0].arrive_expect_tx(8192);
        load(tiles[0], map, full[1], Coordinates{0, 0});
    }
    full[0].wait(0);  // here
""",
        (
            _WAITS + "`full[0]`, parity 0: its one arrival came, 8,192 of 8,192 bytes are missing: the box of `map` "
            "delivers 8,192",
        ),
        "no copy has delivered bytes: none was issued in this phase, or it names another barrier",
        finding="transaction-count",
    ),
    Planted(
        "a load that faults",
        _one(
            "1",
            "    if (thread == 0) { full.arrive_expect_tx(8192); load(tiles[0], map, full, Coordinates{1, 0}); }\n"
            "    full.wait(0);\n",
        ),
        (),
        "",
        ends="fault",
        finding="misaligned",
    ),
    Planted(
        "a barrier of too many threads",
        "    named_barrier_sync<1>(128);  // here\n",
        ("block (0, 0): warps 0 to 1 wait at hang.cu:{here} for barrier 1 of the CTA: 64 of 128 threads are missing",),
        "every thread in the barrier's count must reach it: check the count and the branches before it",
        ends="never",
    ),
)
