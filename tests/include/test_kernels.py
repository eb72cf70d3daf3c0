"""Tests of the headers with common parts of tensor-core kernels, which are epilogue.cuh, mainloop.cuh, roles.cuh and
schedule.cuh."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from ml_dtypes import bfloat16

from cuda_tma import simulate
from cuda_tma.simulate import Config
from tests.include._header import TARGETS, cubin, defined_in, words

HEADERS = ("epilogue", "mainloop", "roles", "schedule")
USING = "".join(f"#include <cuda_tma/{name}.cuh>\n" for name in HEADERS) + "using namespace cuda_tma;\n"
DTYPES = {"BFLOAT16": bfloat16, "FLOAT16": np.float16}


@pytest.fixture(scope="module")
def gpu():
    # The module tests/gpu/test_kernels.py sets the variable CUDA_TMA_TEST_HARDWARE.
    if os.environ.get("CUDA_TMA_TEST_HARDWARE"):
        from tests.gpu.hardware import Hardware

        return Hardware()
    return simulate.Device(multiprocessor_count=4)


def launched(gpu, config, kernel, *arguments, seed=0):
    report = gpu.launch(config, kernel, *arguments, order="random", seed=seed)
    report.raise_for_errors()
    return report


# ---- epilogue.cuh ----

# A warpgroup stores accumulators whose values encode their places. The first tile is above the second tile, or to its
# left with Turn::transposed. The second tile crosses the edge of the tensor in its rows and its last columns.
LEAVE = """
extern "C" __global__ void leave(const __grid_constant__ TiledMap<Part> map, float* expected, int first) {
    constexpr int GROUPS = 64 / (TURN == Turn::none ? Part::extent(0) : Part::extent(1));
    __shared__ Part buffers[GROUPS][BUFFERS];
    Epilogue<Part, PARTS, TURN, BUFFERS> out(buffers[threadIdx.x / (128 / GROUPS)]);
    const int t = threadIdx.x;
    for (int tile = 0; tile < 2; ++tile) {
        float sums[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const unsigned row = 64 * tile + t / 32 * 16 + i / 2 % 2 * 8 + t % 32 / 4;
            const unsigned column = i / 4 * 8 + t % 4 * 2 + i % 2, which = 2 * COUNT * row + column;
            sums[i] = int(which * 2654435761u >> 8) * 1e-3f;
            expected[which] = sums[i];
        }
        out.store_next();   // nothing, and then the first of some parts
        if (TURN == Turn::none) out.take(sums, map, Coordinates{first, 64 * tile}, COLUMNS);
        else out.take(sums, map, Coordinates{64 * tile, first}, COLUMNS);
    }
    out.finish();
}
"""


@pytest.mark.parametrize(
    ("part", "parts", "count", "turn", "buffers", "columns"),
    [
        ("BFLOAT16, Box<16, 64>, SWIZZLE_128B", 4, 128, "none", 2, 256),
        ("FLOAT16, Box<16, 32>, SWIZZLE_64B", 3, 48, "none", 2, 96),
        # A tile of 64 columns with SWIZZLE_64B has two boxes.
        ("BFLOAT16, Box<16, 64>, SWIZZLE_64B", 2, 64, "none", 1, 128),
        ("FLOAT16, Box<16, 16>", 8, 64, "none", 3, 128),
        # The width of the box is an odd multiple of 16 bytes.
        ("BFLOAT16, Box<16, 40>", 3, 60, "none", 2, 120),
        # Shared memory has space for fewer parts than the epilogue has.
        ("BFLOAT16, Box<64, 64>, SWIZZLE_128B", 3, 64, "none", 2, 128),
        ("BFLOAT16, Box<64, 64>, SWIZZLE_128B", 4, 32, "transposed", 2, 64),
        ("FLOAT16, Box<32, 64>, SWIZZLE_128B", 4, 64, "transposed", 2, 128),
        ("BFLOAT16, Box<64, 16>, SWIZZLE_32B", 2, 64, "transposed", 2, 128),
        ("FLOAT16, Box<24, 64>, SWIZZLE_128B", 3, 36, "transposed", 2, 72),
        # The 33 columns are in three parts of the tile.
        ("BFLOAT16, Box<16, 64>, SWIZZLE_128B", 5, 40, "transposed", 2, 33),
        # One part of the tile contains all 20 columns.
        ("FLOAT16, Box<16, 32>, SWIZZLE_64B", 4, 64, "none", 3, 20),
    ],
)
def test_sums_arrive_at_their_places(gpu, part, parts, count, turn, buffers, columns):
    constants = {"PARTS": parts, "COUNT": count, "BUFFERS": buffers, "COLUMNS": columns}
    names = "".join(f"constexpr int {name} = {value};\n" for name, value in constants.items())
    source = f"{USING}{names}constexpr Turn TURN = Turn::{turn};\nusing Part = Tile<{part}>;\n{LEAVE}"
    expected = np.full((128, 2 * count), np.nan, np.float32)
    rows, width, first = 104, 2 * count + 3 * 8, 32
    output = np.full((rows, width), np.nan, DTYPES[part.split(",")[0]])
    whole = output if turn == "none" else np.ascontiguousarray(output.T)
    launched(gpu, Config(1, 128), gpu.compile(source, "leave"), whole, expected, first)
    in_part = [int(extent) for extent in re.search(r"Box<(\d+), (\d+)>", part).groups()][turn == "none"]
    # The epilogue stores only complete parts.
    end = min(width, first + -(-columns // in_part) * in_part)
    output[:, first:end] = expected[:rows, : end - first].astype(output.dtype)
    assert not np.isnan(expected).any()
    assert np.array_equal(whole, output if turn == "none" else output.T, equal_nan=True)


# ---- mainloop.cuh, roles.cuh: the smallest product ----

PRODUCT = """
using A = Tile<BFLOAT16, Box<64, 64>, SWIZZLE_128B>;
struct Shared { A a[2], b[2]; Pipeline<2> ring; };
extern "C" __global__ void __launch_bounds__(256, 1)
product(const __grid_constant__ TiledMap<A> a_map, const __grid_constant__ TiledMap<A> b_map, float* c, int steps) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(1);
    in_roles<1, 24, 240, Ending::drained>([&] {
        Stage<2> at;
        for (int step = 0; step < steps; ++step, at.next()) {
            Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0]);
            load(shared.a[at.index], a_map, full, Coordinates{64 * step, 0});
            load(shared.b[at.index], b_map, full, Coordinates{64 * step, 0});
        }
        shared.ring.drain(at);   // each stage is released, including the last
    }, [&] {
        float sums[32] = {};
        int meanwhile = 0;
        Stage<2> at;
        accumulate(sums, shared.ring, at, steps, [&](int stage, int step) {
            for (int k = 0; k < 64; k += 16)
                wgmma(sums, k_major(shared.a[stage], 0, k), k_major(shared.b[stage], 0, k), step + k > 0);
        }, [&] { ++meanwhile; });
        for (int i = 0; i < 32; ++i) {
            const int row = threadIdx.x / 32 * 16 + i / 2 % 2 * 8 + threadIdx.x % 32 / 4;
            c[64 * row + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = sums[i];
        }
        c[64 * 64 + threadIdx.x] = 100 * meanwhile + 10 * at.index + at.parity;
    });
}
"""


# The first loads of the kernel BEGUN start before the CTAs of a cluster synchronize.
BEGUN = PRODUCT
for before, after in {
    "    if (threadIdx.x == 0) shared.ring.init(1);\n": """    if (is_producer<1>()) {
        shared.ring.init(1);
        fence_proxy_async();
    }
    const auto load_step = [&](Stage<2> at, int step) {
        Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0]);
        load(shared.a[at.index], a_map, full, Coordinates{64 * step, 0});
        load(shared.b[at.index], b_map, full, Coordinates{64 * step, 0});
    };
""",
    "240, Ending::drained>([&] {\n        Stage<2> at;\n": """240>([&] { load_step({}, 0); }, [&] {
        Stage<2> at;
        at.next();
""",
    """int step = 0; step < steps; ++step, at.next()) {
            Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0]);
            load(shared.a[at.index], a_map, full, Coordinates{64 * step, 0});
            load(shared.b[at.index], b_map, full, Coordinates{64 * step, 0});
        }
""": "int step = 1; step < steps; ++step, at.next()) load_step(at, step);\n",
}.items():
    assert BEGUN.count(before) == 1
    BEGUN = BEGUN.replace(before, after)


@pytest.mark.parametrize("source", [PRODUCT, BEGUN], ids=["as a whole", "begun"])
@pytest.mark.parametrize(("steps", "left"), [(1, 110), (5, 510)])
def test_a_product(gpu, steps, left, source):
    a, b = np.random.default_rng(0).integers(-3, 4, (2, 64, 64 * steps)).astype(bfloat16)
    c = np.full(64 * 64 + 128, np.nan, np.float32)
    launched(gpu, Config(1, 256), gpu.compile(USING + source, "product"), a, b, c, steps)
    assert np.array_equal(c[: 64 * 64].reshape(64, 64), a.astype(np.float32) @ b.astype(np.float32).T)
    # The rest of the output is the result of the concurrent work, and of the stage after the last stage.
    assert (c[64 * 64 :] == left).all()


# ---- schedule.cuh ----

BANDS = """
template <int Height>
__device__ void all(int down, int across, int* places) {
    const Bands<Height> tiles{down, across};
    for (int i = threadIdx.x; i < tiles.count(); i += 32) {
        places[2 * i] = tiles[i].down;
        places[2 * i + 1] = tiles[i].across;
    }
}
extern "C" __global__ void bands(int down, int across, int* places) {
    all<1>(down, across, places);
    all<3>(down, across, places + 2 * down * across);
    all<8>(down, across, places + 4 * down * across);
}
"""


@pytest.mark.parametrize(("down", "across"), [(1, 1), (8, 3), (7, 5), (3, 1), (17, 4)])
def test_bands(gpu, down, across):
    """The tile schedule goes down a band of tiles, and then to the right. The last band may have fewer tiles."""
    found = np.full((3, down * across, 2), -1, np.int32)
    launched(gpu, Config(1, 32), gpu.compile(USING + BANDS, "bands"), down, across, found)
    for places, height in zip(found.tolist(), (1, 3, 8), strict=True):
        every = [[row, column] for row in range(down) for column in range(across)]
        assert places == sorted(every, key=lambda place: (place[0] // height, place[1], place[0]))


TASKS = """
struct alignas(16) Task { int number, is_last, unused[2]; };
extern "C" __global__ void tasks(const Task* given, unsigned* drawn, int count, int* seen) {
    __shared__ TaskList<Task> list;
    if (threadIdx.x == 0) list.init(32);
    __syncwarp();
    cluster_sync();
    Stage<2> turn;
    for (int i = 0; threadIdx.x <= 32; ++i) {   // a warp of readers, and a thread that takes tasks
        const Task task = threadIdx.x == 32 ? list.draw(turn, given, drawn, count) : list.next(turn);
        if (task.is_last) break;
        for (int late = threadIdx.x == 32 ? 0 : i * 20; late >= 0; --late)
            ((volatile int*)seen)[(blockIdx.x * 33 + threadIdx.x) * count + i] = task.number;
    }
    __syncwarp();
    cluster_sync();
}
"""


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_each_task_is_drawn_once(gpu, count, ctas):
    """Exactly one cluster takes each task of the schedule, and all CTAs of the cluster receive the task. The sanitizer
    would report advice for waits without ``.acquire.cluster``.
    """
    # The grid has two clusters, and a last task ends the loop of each cluster.
    given = np.zeros((count + 2, 4), np.int32)
    given[:, 0], given[count:, 1] = np.arange(count + 2), 1
    drawn, kernel = np.zeros(1, np.int32), gpu.compile(USING + TASKS, "tasks")
    for seed in range(3):
        seen = np.full((2 * ctas, 33, len(given)), -1, np.int32)
        report = launched(gpu, Config(2, 64, ctas), kernel, given, drawn, len(given), seen, seed=seed)
        assert getattr(report, "findings", ()) == () and drawn[0] == 0
        assert (seen == seen[::ctas, :1].repeat(ctas, axis=0)).all()
        numbers = [number for cluster in seen[::ctas, 0] for number in cluster[cluster >= 0]]
        assert sorted(numbers) == list(range(count))


# ---- refusals, and their lines ----

PART = "Tile<BFLOAT16, Box<16, 64>, SWIZZLE_128B>"
EPILOGUE = (
    'extern "C" __global__ void k(const __grid_constant__ TiledMap<{0}> map) {{ __shared__ {0} buffers[2]; {1} }}'
)


@pytest.mark.parametrize(
    ("part", "statement", "message"),
    [
        ("Tile<FLOAT32, Box<16, 32>>", "", "sums leave as BFLOAT16 or FLOAT16"),
        ("Tile<FLOAT16, Box<32, 64>, SWIZZLE_128B>", "", "16 rows of the sums, a warp's, or 64"),
        ("Tile<FLOAT16, Box<16, 12>>", "", "a multiple of 8 columns"),
        (
            PART,
            "float sums[160]; out.take(sums, map, Coordinates{0, 0});",
            "as many parts as the epilogue has, or fewer",
        ),
        (PART, "float sums[16]; out.take(sums, map, Coordinates{0, 0});", "a thread has columns / 2 sums"),
        (PART, "in_roles<3, 24, 168>([] {}, [] {});", "no more registers than at the launch"),
        # The roles need 65,536 registers, but the launch has only 64,512 registers.
        (PART, "in_roles<2, 32, 240>([] {}, [] {});", "no more registers than at the launch"),
        (PART, "__shared__ TaskList<int> list; list.init(1);", "a task is copied in pieces of 16 bytes"),
    ],
)
def test_misuse_is_named(part, statement, message):
    with pytest.raises(AssertionError, match=message):
        cubin(USING + EPILOGUE.format(part, f"Epilogue<{part}, 4> out(buffers); {statement}"), "sm_90a")


@pytest.mark.parametrize("target", TARGETS)
def test_parts_without_wgmma_are_for_every_target(target):
    sums = "float sums[128] = {}; out.take(sums, map, Coordinates{0, 0}); out.finish();"
    source = EPILOGUE.format(PART, f"Epilogue<{PART}, 4> out(buffers); {sums}")
    assert cubin(USING + source + BANDS + TASKS, target).startswith(b"\x7fELF")


def test_parts_with_wgmma_have_a_clear_error():
    with pytest.raises(AssertionError, match="wgmma"):
        cubin(USING + PRODUCT, "sm_100a")


def test_nothing_is_left_out():
    """The kernels of this module call each function, directly or through another function."""
    used = words([LEAVE, PRODUCT, BEGUN, BANDS, TASKS])
    inner = {
        "rounded",
        "store_number",
        "store_part",
        "address",
        "sync",
        "is_turned",
        "rows",
        "columns",
        "threads",
        "tell",
        "read",
        "is_first",
        "store_rest_in",
        "require_registers",
        "operator",
    }
    defined = set().union(*(defined_in(f"{name}.cuh") for name in HEADERS))
    assert defined - inner - {"store_rest"} <= used
