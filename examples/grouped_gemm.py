"""Compute many uneven matrix products in one launch, for a mixture of experts that is routed on the device.

Each expert has (N, K) weights. The tokens of all experts are rows of one packed matrix, with those of expert 0 first,
and the outputs have the same order. For each expert: output[its rows] = tokens[its rows] @ weights[expert].T

Only device memory contains the number of tokens of each expert. The router has just written the numbers, and the host
does not wait for them. The kernel makes the schedule: each CTA computes the row ends and the tiles of all experts.

Three maps are made once, for any routing. Loads may reach into the next expert's rows, but stores must not. The map
of the output therefore contains each row 64 times, so that a store may end at any row (Rows).

The kernel is the kernel of gemm.py with exchanged operands. The kernel multiplies weights by tokens, so that the
tokens, from 1 to 2000, are on the side of the tile that has 16 widths. Some tiles in flight wait for memory, and other
tiles for the tensor cores.
"""

import itertools
import random
from collections import Counter
from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

# CHECKED contains the number of tokens of each expert in the first step.
CHECKED = (0, 1, 300, 64, 65, 0, 17, 700, 0)


def routed(experts, tokens, is_skewed):
    """Return the tokens of each expert in four steps, which are uniform, or skewed to small and large numbers."""
    draw = random.Random(0)
    likely = [2 ** draw.uniform(0, 11) if is_skewed else 1 for _ in range(experts)]
    steps = (Counter(draw.choices(range(experts), likely, k=tokens)) for _ in range(4))
    return tuple(tuple(step[expert] for expert in range(experts)) for step in steps)


MODELS = {  # Each model has a number of experts, N, K, and one or more total numbers of tokens.
    "Mixtral 8x7B": (8, 14336, 4096, 8192, 2, 32, 512),
    "Qwen3 235B": (128, 3072, 4096, 32768, 8, 128, 2048),
    "DeepSeek-V3, an eighth": (32, 4096, 7168, 16384, 64),
}
SMALL = (("edges", (CHECKED, CHECKED[::-1], (0, 0, 1147, *6 * (0,))), 512, 200),)  # Each case is (name, steps, N, K).
LARGE = tuple(
    (f"{name}, {kind}", routed(experts, tokens, kind == "skewed"), rows, depth)
    for name, (experts, rows, depth, *all_tokens) in MODELS.items()
    for tokens in all_tokens
    for kind in (("uniform", "skewed") if tokens > 2048 else ("decoding",))
)
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the accumulators are floats
constexpr int SIDE = 64;       // elements of K in a step; rows of the weights, and tokens, in a stored part
constexpr int CTAS = 2;        // CTAs of a cluster: they share a tile's tokens, and each has 128 rows of the weights
constexpr unsigned short ALL = (1 << CTAS) - 1;
constexpr int CONSUMERS = 2;   // warpgroups in a CTA
constexpr int OURS = SIDE * CONSUMERS, ROWS = OURS * CTAS;   // rows of the weights in a tile: of a CTA, of all CTAs
constexpr int WIDEST = 256;    // tokens in a tile, at most
constexpr int LOADED = 32;     // tokens in a box
constexpr int GRAIN = 16;      // tokens: a tile's width is a multiple of this
constexpr int STAGES = 4;      // stages of the ring
constexpr int EXPERTS = 256;   // at most: a power of two
constexpr int BALANCE = 100;   // tokens: from about this number on, multiplying takes longer than reading the weights

__device__ constexpr int parts_of(int amount, int part) { return (amount + part - 1) / part; }
__device__ constexpr int rows_of(int tokens) { return OURS + LOADED * parts_of(tokens, LOADED); }   // rows of a step

template <int Rows> using Rectangle = Tile<TYPE, Box<Rows, SIDE>, SWIZZLE_128B>;
using Room = Rectangle<rows_of(WIDEST)>;   // for a step: rows of the weights, followed by tokens
using Square = Rectangle<SIDE>;
using Repeated = Tile<TYPE, Box<1, SIDE, SIDE>, SWIZZLE_128B>;   // the same bytes
template <int Rows> using Map = TiledMap<Rectangle<Rows>, OOB_FILL_NONE, L2_PROMOTION_256B>;
using OutputMap = TiledMap<Repeated>;

struct alignas(16) Task { int expert, first_row, first_token, tokens; };   // ROWS rows; 0 tokens: the end of the list

// All tiles, in the order in which clusters take them. Tiles that share rows of the weights are neighbors. Tiles that
// keep the memory busy, and those that keep the tensor cores busy, are each spread over the whole list, the smallest
// last, so that all clusters end together.
struct Routing {
    int first_tile[EXPERTS];    // by expert, the one with the most tokens first
    short order[EXPERTS];       // the index of that one, of the second, ...
    int end[EXPERTS];           // the row after each expert's tokens
    int experts, count, large;  // count: of the tiles; large: of those that keep the tensor cores busy

    // For weights with this number of `rows`. All threads of the CTA call it, one per expert; then a __syncthreads().
    __device__ void make(const int* counts, int experts, int rows) {
        const int me = threadIdx.x, mine = me < experts ? counts[me] : 0, down = parts_of(rows, ROWS);
        if (me < experts) end[me] = mine;   // temporarily
        __syncthreads();
        int my_rank = 0, my_end = 0, before = 0, all = 0, of_large = 0;   // the last three: tiles with the same rows
        for (int other = 0; other < experts; ++other) {
            const int tokens = end[other], across = parts_of(tokens, WIDEST);
            const bool is_before = tokens > mine || (tokens == mine && other < me);
            my_rank += is_before;
            before += is_before ? across : 0;
            my_end += other <= me ? tokens : 0;
            all += across;
            of_large += tokens >= BALANCE ? across : 0;
        }
        __syncthreads();
        this->experts = experts, count = all * down, large = of_large * down;   // all threads write the same values
        if (me >= experts) return;
        end[me] = my_end;
        order[my_rank] = me;
        first_tile[my_rank] = before * down;
    }

    __device__ Task operator[](int i) const {
        if (i >= count) return {};
        const auto large_before = [&](int i) { return int(static_cast<unsigned long long>(i) * large / count); };
        const int before = large_before(i), tile = large_before(i + 1) > before ? before : large + i - before;
        int at = 0;   // the last that begins here or before: experts without tiles come last, and begin after them
        for (int step = EXPERTS / 2; step > 0; step /= 2)
            if (at + step < experts && first_tile[at + step] <= tile) at += step;
        const int expert = order[at], first = expert > 0 ? end[expert - 1] : 0, tokens = end[expert] - first;
        const int grains = parts_of(tokens, GRAIN), across = parts_of(tokens, WIDEST);
        const int row = (tile - first_tile[at]) / across, part = (tile - first_tile[at]) % across;
        const auto cut = [&](int part) { return min(tokens, GRAIN * (grains * part / across)); };   // about the same
        return {expert, row * ROWS, first + cut(part), cut(part + 1) - cut(part)};
    }
};

// The output: rows up to `end`. Its map is that of a tensor (rows + 1, 64, N), where element (i, j,
// n) is row i + j of memory in which the output begins in row 64: rows beyond `end` are beyond j =
// 63.
struct Rows {
    const OutputMap* map;
    int end;

    __device__ void operator()(Coordinates<2> at, const Square& part) const {
        const int left = min(end - at.value[1], SIDE);   // at least 1: a tile has no box without tokens
        store(*map, Coordinates{at.value[0], SIDE - left, at.value[1] + left}, reinterpret_cast<const Repeated&>(part));
    }
};

// Steps in a stage: two, if they fit. A tile that waits for its weights requests them sooner this way.
__device__ constexpr int depth(int tokens) { return 2 * rows_of(tokens) <= Room::extent(0) ? 2 : 1; }

struct Shared {
    Room stages[STAGES];
    Square out[CONSUMERS][2];   // in flight
    Pipeline<STAGES> ring;
    TaskList<Task> tiles;
    Routing routing;
};

__device__ void produce(Shared& shared, const Map<LOADED>& tokens, const Map<OURS>& weights, unsigned* drawn, int rows,
                        int steps) {
    const int rank = cluster_cta_rank(), count = shared.routing.count + gridDim.x / CTAS;   // one last task for each
    const CachePolicy keep = evict_last();   // in L2, because every row of tiles loads the same tokens
    Stage<STAGES> at;
    for (Stage<2> turn;;) {
        const Task tile = shared.tiles.draw(turn, shared.routing, drawn, count);
        if (tile.tokens == 0) break;
        const int row = tile.expert * rows + tile.first_row + OURS * rank, step_rows = rows_of(tile.tokens);
        const int deep = depth(tile.tokens), stages = parts_of(steps, deep);
        for (int stage = 0; stage < stages; ++stage, at.next()) {
            // Waits for the consumers of all CTAs, because all receive this CTA's tokens. Other shares may arrive
            // before the expect_tx: the count is then below zero for a while.
            Barrier& full = shared.ring.acquire(at, deep * step_rows * Rectangle<1>::tx_bytes());
            for (int part = 0; part < deep; ++part) {
                const int k = SIDE * (stage * deep + part), first = part * step_rows;
                Room& to = shared.stages[at.index];
                load(to.rows<OURS>(first), weights, full, Coordinates{k, row});
                for (int i = LOADED * rank; i < tile.tokens; i += LOADED * CTAS)
                    load_multicast(to.rows<LOADED>(first + OURS + i), tokens, full,
                                   Coordinates{k, tile.first_token + i}, ALL, keep);
            }
        }
    }
}

// A row of the weights is a row of the accumulators and a column of the output, so stores are transposed.
using Output = Epilogue<Square, WIDEST / SIDE, Turn::transposed, 2, Rows>;

// The instruction contains the number of accumulators, so there is a loop for each width of a tile. (A choice of the
// instruction in each step makes it 5 to 9 % slower.)
template <int Width>
__device__ __forceinline__ void multiply(Shared& shared, int tokens, float (&sums)[WIDEST / 2], int steps,
                                         Stage<STAGES>& at, Output& out) {
    if constexpr (Width > GRAIN)
        if (tokens <= Width - GRAIN) return multiply<Width - GRAIN>(shared, tokens, sums, steps, at, out);
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);   // ptxas detects: the same in all lanes, as in
                                                                // descriptors
    const auto weights = k_major(shared.stages[0], SIDE * group), others = k_major(shared.stages[0], OURS);
    auto& used = reinterpret_cast<float (&)[Width / 2]>(sums);
    const auto multiply_stage = [&](int stage, int step) {
#pragma unroll
        for (int k = 0; k < SIDE * depth(Width); k += 16) {
            const unsigned rows = stage * Room::extent(0) + k / SIDE * rows_of(Width);
            const unsigned bytes = rows * Room::pitch_bytes() + 2 * (k % SIDE);
            wgmma(used, weights.advance(bytes), others.advance(bytes), step + k > 0);
        }
    };
    accumulate<CTAS>(used, shared.ring, at, parts_of(steps, depth(Width)), multiply_stage, [&] { out.store_next(); });
}

__device__ __forceinline__ void consume(Shared& shared, const OutputMap& output, int steps) {
    const int group = threadIdx.x / 128, row = SIDE * (CONSUMERS * int(cluster_cta_rank()) + group);
    Output out(shared.out[group]);
    float sums[WIDEST / 2] = {};
    Stage<STAGES> at;
    Stage<2> turn;
    for (Task tile = shared.tiles.next(turn); tile.tokens > 0; tile = shared.tiles.next(turn)) {
        multiply<WIDEST>(shared, tile.tokens, sums, steps, at, out);
        const Rows to{&output, tile.first_token + tile.tokens};
        out.take(sums, to, Coordinates{tile.first_row + row, tile.first_token}, tile.tokens);
    }
    out.finish();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
grouped_gemm(const __grid_constant__ Map<LOADED> tokens, const __grid_constant__ Map<OURS> weights, const int* counts,
             const __grid_constant__ OutputMap output, unsigned* drawn, int experts, int rows, int steps) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CTAS * CONSUMERS);
    if (threadIdx.x == 0) shared.tiles.init(128 * CONSUMERS);
    shared.routing.make(counts, experts, rows);
    __syncthreads();
    const auto consumers = [&]() __attribute__((always_inline)) { consume(shared, output, steps); };   // or wgmmas wait
    in_roles<CONSUMERS, 40, 232>([&] { produce(shared, tokens, weights, drawn, rows, steps); }, consumers);
}
"""
CONSTANTS = {"side": "SIDE", "ctas": "CTAS", "threads": "128 * (CONSUMERS + 1)", "most": "EXPERTS"}


def prepare(device, kernel, tokens, weights, memory, counts, drawn):
    """Return a launch of output = tokens @ weights.T for these counts. The output begins in row `side` of `memory`."""
    side, ctas, threads, most = map(cuda_tma.parameters_of(kernel).constants.get, CONSTANTS)
    experts, rows, depth = weights.shape
    assert experts <= most, f"{experts} experts: the kernel has room for {most}"
    config = LaunchConfig(grid=device.properties.multiprocessor_count // ctas * ctas, cluster=ctas, block=threads)
    output = memory.unfold(0, side, 1).transpose(1, 2)  # Element (i, j, n) is element n of row i + j.
    arguments = tokens, weights.flatten(0, 1), counts, output, drawn, experts, rows, -(-depth // side)
    return partial(cuda_tma.prepare(kernel, config, *arguments), device.default_stream)


def grouped_mm(tokens, weights, ends):
    """Return a run of the products by torch, for experts with these row ends."""
    return partial(torch._grouped_mm, tokens, weights.transpose(1, 2), offs=ends)


RIVALS = {"torch._grouped_mm": grouped_mm}


class Turns:
    """A sequence of runs. `sizes` is the routing of the last run, and `left` is the result of this run."""

    def __init__(self, runs, steps):
        self.runs, self.sizes, self.left = itertools.cycle(zip(runs, steps, strict=True)), steps[0], None

    def __call__(self):
        run, self.sizes = next(self.runs)
        self.left = run()


def check(left, tokens, weights, sizes, units=1):
    """Compare every element with float32, within the rounding to bf16 and the effect of the order of sums."""
    for of_expert, some, weight in zip(left.split(sizes), tokens.split(sizes), weights, strict=True):
        expected = some.float() @ weight.float().T
        torch.testing.assert_close(of_expert.float(), expected, rtol=units * 2**-8, atol=units * 2**-10)


def cases(problems):
    """Yield cases as `_example` describes them. Each run has its own routing, as counts or (for torch) row ends."""
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "grouped_gemm", constants=CONSTANTS)
    parameters = cuda_tma.parameters_of(kernel)
    dtype, side = dtype_of(parameters["tokens"].map_type), parameters.constants["side"]
    for name, steps, rows, depth in problems:
        count, experts = sum(steps[0]), len(steps[0])
        weights = torch.randn(experts, rows, depth, device="cuda", dtype=dtype).div_(depth**0.5)
        tokens = torch.randn(count, depth, device="cuda", dtype=dtype)
        memory = tokens.new_full((side + count, rows), torch.nan)
        counts, drawn = (torch.tensor(values, device="cuda", dtype=torch.int32) for values in (steps, [0]))
        run = Turns([prepare(device, kernel, tokens, weights, memory, some, drawn) for some in counts], steps)
        ends = counts.cumsum(1, dtype=torch.int32)
        makers = RIVALS if tokens.is_cuda else {}
        rivals = {rival: Turns([make(tokens, weights, some) for some in ends], steps) for rival, make in makers.items()}
        case = f"{name}: {experts} experts of {rows} x {depth}, {min(steps[0])} to {max(steps[0])} of {count} tokens"
        moved_bytes = 2 * (sum(size > 0 for size in steps[0]) * rows * depth + count * (depth + rows))
        yield f"{case}, {short_name(dtype)}", run, rivals, 2 * count * rows * depth, moved_bytes
        check(memory[side:], tokens, weights, run.sizes)
        assert memory[:side].isnan().all() and drawn.item() == 0
        for rival in rivals.values():
            check(rival.left, tokens, weights, rival.sizes, units=4)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
