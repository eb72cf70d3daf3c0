"""Compute attention, softmax(scale * Q @ K.T) @ V, forward, in bfloat16, full or causal, on compute capability 10.

Q and the output are (batch, heads, queries, 128), and K and V are (batch, kv heads, keys, 128). The last dimension is
contiguous. Each kv head serves an equal number of heads. In causal attention, each query attends to one key fewer than
the next query, and the last query to all keys.

A CTA computes 128 queries of a head. Its warps have roles. One thread loads Q, and loads K and V into two rings, 128
keys each, whenever a stage is free. Another thread issues Q @ K.T of the next keys, and then adds the weights times V
of the preceding keys. Four warps compute the weights. Each of their threads has a row of the scores, and rounds the
exponentials of the row.

Scores, weights and output are in tensor memory, from which the second product reads the weights as its operand A.
Columns 0 to 255 contain the scores of two tiles of keys, so that a product runs while threads read the other scores.
Columns 256 to 383 contain the output. When a row has a new greatest score, its thread multiplies the output of the row
by a factor. Columns 384 to 511 contain the weights of two tiles, two bf16 in each column.

No GPU has run this example. The simulator computes its products as the PTX ISA documents them.
"""

from functools import cache

import numpy as np
from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

# Each case is (batch, heads, kv heads, queries, keys, causal).
SIZES = ((1, 2, 1, 300, 300, True), (2, 2, 2, 129, 777, False), (1, 2, 2, 200, 100, True), (1, 16, 4, 4096, 4096, True))
TARGETS = ("sm_100a", "sm_103a")
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tcgen05.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;

constexpr int ROWS = 128, D = 128;   // queries of a CTA, and keys of a tile; the width of a head
constexpr int STAGES = 2;            // stages of each ring, 32 KB each
constexpr int PART = 32;             // columns of tensor memory in registers at a time
constexpr int THREADS = ROWS + 64;
enum Role { LOADS = ROWS / 32, MULTIPLIES };   // the warps after the four warps of weights
#define MASKED __int_as_float(0xFF800000)      // minus infinity

using Rows = Tile<BFLOAT16, Box<1, 1, ROWS, D>, SWIZZLE_128B>;   // rows of one head of one batch
using Map = TiledMap<Rows>;

struct Shared {
    Rows q;   // later the output
    Rows k[STAGES], v[STAGES];
    Pipeline<STAGES> k_ring, v_ring;
    Barrier q_full, scores[2], weights[2], output;   // a phase is a complete tile, whose number is a Step
    unsigned slot;
};

// The columns of tensor memory.
struct Columns {
    const TensorMemory<512>& memory;

    __device__ tcgen05::Address scores(int i) const { return memory.column(i * ROWS); }
    __device__ tcgen05::Address output() const { return memory.column(2 * ROWS); }
    __device__ tcgen05::Address weights(int i) const { return memory.column(2 * ROWS + D + i * ROWS / 2); }
};

struct Problem { int queries, keys, heads_of_kv; float scale; };

__device__ void produce(Shared& shared, const Map& q_map, const Map& k_map, const Map& v_map, int heads_of_kv,
                        int tiles) {
    const int head = blockIdx.y, batch = blockIdx.z;
    shared.q_full.arrive_expect_tx(shared.q);
    load(shared.q, q_map, shared.q_full, Coordinates{0, ROWS * blockIdx.x, head, batch});
    Stage<STAGES> at;
    for (int tile = 0; tile < tiles; ++tile, at.next()) {
        const Coordinates where{0, ROWS * tile, head / heads_of_kv, batch};
        load(shared.k[at.index], k_map, shared.k_ring.acquire(at, shared.k[0]), where);
        load(shared.v[at.index], v_map, shared.v_ring.acquire(at, shared.v[0]), where);
    }
}

// Multiplies the weights of a tile by V.
__device__ void multiply_weights(Shared& shared, Columns columns, Stage<2> step, Stage<STAGES> at, bool accumulate) {
    shared.v_ring.wait(at);
    shared.weights[step.index].wait(step.parity);
    tcgen05::fence_after_thread_sync();
    for (int i = 0; i < ROWS; i += 16) {
        const tcgen05::MatrixInLanes<Input::bf16> weights{columns.weights(step.index).column(i / 2)};
        tcgen05::mma<ROWS, D>(columns.output(), weights, tcgen05::mn_major(shared.v[at.index], i), accumulate || i > 0);
    }
    tcgen05::commit(shared.v_ring.empty[at.index]);
    tcgen05::commit(shared.output);
}

__device__ void multiply(Shared& shared, Columns columns, int tiles) {
    shared.q_full.wait(0);
    Stage<STAGES> at, before;
    Stage<2> step, step_before;
    for (int tile = 0; tile < tiles; ++tile) {
        shared.k_ring.wait(at);
        tcgen05::fence_after_thread_sync();
        for (int i = 0; i < D; i += 16)
            tcgen05::mma<ROWS, ROWS>(columns.scores(step.index), tcgen05::k_major(shared.q, 0, i),
                                     tcgen05::k_major(shared.k[at.index], 0, i), i > 0);
        tcgen05::commit(shared.k_ring.empty[at.index]);
        tcgen05::commit(shared.scores[step.index]);
        if (tile > 0) multiply_weights(shared, columns, step_before, before, tile > 1);
        step_before = step, before = at;
        step.next(), at.next();
    }
    multiply_weights(shared, columns, step_before, before, tiles > 1);
}

// 2 ** x, within 2 units in the last place; 0 for -infinity.
__device__ inline float exp2_approx(float x) {
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}

// Returns scores of this thread's row from a column on, with minus infinity for keys from `visible` on.
__device__ void read_scores(float (&scores)[PART], tcgen05::Address at, int column, int visible) {
    tcgen05::ld(scores, at.column(column));
    tcgen05::wait_ld(scores);
    if (visible < column + PART)
        for (int i = 0; i < PART; ++i) scores[i] = column + i < visible ? scores[i] : MASKED;
}

// A row of a CTA's queries.
struct Row {
    float greatest = MASKED, sum = 0;   // the greatest score so far, and the sum of exponentials

    // Writes the weights of a tile. Returns the factor by which earlier weights change.
    __device__ float take(tcgen05::Address scores_at, tcgen05::Address weights_at, float scale, int visible) {
        float scores[PART], most = greatest;
#pragma unroll 1
        for (int column = 0; column < ROWS; column += PART) {
            read_scores(scores, scores_at, column, visible);
            for (float score : scores) most = fmaxf(most, score);
        }
        const float base = most == MASKED ? 0 : most * scale;   // if all are masked, the exponentials are zeros
        const float factor = exp2_approx(greatest * scale - base);
        greatest = most;
        sum *= factor;
#pragma unroll 1
        for (int column = 0; column < ROWS; column += PART) {
            read_scores(scores, scores_at, column, visible);
            unsigned weights[PART / 2];
            for (int i = 0; i < PART; ++i) sum += scores[i] = exp2_approx(fmaf(scores[i], scale, -base));
            for (int i = 0; i < PART / 2; ++i) weights[i] = bf16x2(scores[2 * i], scores[2 * i + 1]);
            tcgen05::st(weights_at.column(column / 2), weights);
        }
        return factor;
    }
};

__device__ void multiply_row(tcgen05::Address at, float factor) {
#pragma unroll 1
    for (int column = 0; column < D; column += PART) {
        float output[PART];
        tcgen05::ld(output, at.column(column));
        tcgen05::wait_ld(output);
        for (float& value : output) value *= factor;
        tcgen05::st(at.column(column), output);
    }
}

__device__ void attend(Shared& shared, Columns columns, const Map& output_map, const Problem& problem, int tiles,
                       bool causal) {
    const int row = threadIdx.x, query = ROWS * blockIdx.x + row;
    const int keys = causal ? min(problem.keys, query + 1 + problem.keys - problem.queries) : problem.keys;
    const tcgen05::Address output = columns.output().of_warp();
    Row state;
    Stage<2> step;
    for (int tile = 0; tile < tiles; ++tile, step.next()) {
        shared.scores[step.index].wait(step.parity);
        tcgen05::fence_after_thread_sync();
        const float factor = state.take(columns.scores(step.index).of_warp(), columns.weights(step.index).of_warp(),
                                        problem.scale * 1.4426950408889634f, keys - ROWS * tile);   // log2(e)
        if (tile > 0) {
            shared.output.wait((tile - 1) % 2);
            tcgen05::fence_after_thread_sync();
            if (__any_sync(~0u, factor != 1)) multiply_row(output, factor);
        }
        tcgen05::wait_st();
        tcgen05::fence_before_thread_sync();
        shared.weights[step.index].arrive();
    }
    shared.output.wait((tiles - 1) % 2);   // all products are complete, so Q is free
    tcgen05::fence_after_thread_sync();
    const float factor = state.sum > 0 ? 1 / state.sum : 0;
#pragma unroll 1
    for (int column = 0; column < D; column += PART) {
        float out[PART];
        tcgen05::ld(out, output.column(column));
        tcgen05::wait_ld(out);
        for (float& value : out) value *= factor;
        for (int i = 0; i < PART; i += 8)
            shared.q.as<uint4>(0, 0, row, column + i) = {
                bf16x2(out[i], out[i + 1]), bf16x2(out[i + 2], out[i + 3]), bf16x2(out[i + 4], out[i + 5]),
                bf16x2(out[i + 6], out[i + 7])};
    }
    fence_proxy_async();
    named_barrier_sync<1>(ROWS);
    if (row == 0) {
        store(output_map, Coordinates{0, ROWS * blockIdx.x, blockIdx.y, blockIdx.z}, shared.q);   // drops later rows
        commit_group();
        wait_group_read();
    }
}

template <bool Causal>
__global__ void __launch_bounds__(THREADS, 1)
attention(const __grid_constant__ Map q_map, const __grid_constant__ Map k_map, const __grid_constant__ Map v_map,
          const __grid_constant__ Map output_map, Problem problem) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) {
        shared.k_ring.init(1);
        shared.v_ring.init(1);
        shared.q_full.init(1);
        shared.output.init(1);
        for (Barrier& barrier : shared.scores) barrier.init(1);
        for (Barrier& barrier : shared.weights) barrier.init(ROWS);
        fence_barrier_init();
    }
    const TensorMemory<512> memory(shared.slot);   // synchronizes the CTA
    const Columns columns{memory};
    const int later = problem.keys - problem.queries;   // the first query attends to 1 + this many keys
    const int keys = Causal ? min(problem.keys, ROWS * int(blockIdx.x + 1) + later) : problem.keys;
    const int tiles = max(1, (keys + ROWS - 1) / ROWS);
    const int warp = threadIdx.x / 32;
    if (warp == LOADS && elect_one()) produce(shared, q_map, k_map, v_map, problem.heads_of_kv, tiles);
    else if (warp == MULTIPLIES && elect_one()) multiply(shared, columns, tiles);
    else if (warp < LOADS) attend(shared, columns, output_map, problem, tiles, Causal);
}
"""
CONSTANTS = {"rows": "ROWS", "width": "D", "threads": "THREADS"}
PROBLEM = np.dtype("i4, i4, i4, f4")  # The fields match the members of the structure in the kernel.


def attention(q, k, v, scale, causal):
    """Return the expected output in float32."""
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    k, v = (each.float().repeat_interleave(heads // k.shape[1], dim=1) for each in (k, v))
    scores = scale * q.float() @ k.transpose(2, 3)
    if causal:
        visible = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(dim=3).nan_to_num() @ v  # A query without keys has the output 0.


def main():
    device = cuda_tma.Device()
    device.set_current()
    compiled = cache(lambda causal: cuda_tma.compile(SOURCE, f"attention<{str(causal).lower()}>", constants=CONSTANTS))
    for batch, heads, kv_heads, queries, keys, causal in SIZES:
        constants = cuda_tma.parameters_of(compiled(causal)).constants
        rows, width = constants["rows"], constants["width"]
        shapes = (batch, heads, queries, width), *2 * [(batch, kv_heads, keys, width)]
        q, k, v = (torch.randn(*shape, dtype=torch.bfloat16, device="cuda") for shape in shapes)
        output = torch.full_like(q, torch.nan)
        config = LaunchConfig(grid=(-(-queries // rows), heads, batch), block=constants["threads"])
        problem = np.array((queries, keys, heads // kv_heads, width**-0.5), PROBLEM).tobytes()
        cuda_tma.launch(device.default_stream, config, compiled(causal), q, k, v, output, problem)
        error = (output.float() - attention(q, k, v, width**-0.5, causal)).abs().max()
        assert error < 0.02, f"off by up to {error}"  # The weights and the output are rounded to bfloat16.
        print(f"ok: {queries} queries and {keys} keys of {heads} heads, {'causal' if causal else 'full'}")


if __name__ == "__main__":
    start(main, __doc__)
