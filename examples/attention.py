"""Compute attention, softmax(scale * Q @ K.T) @ V, forward, in bfloat16 or float16, full or causal, with grouped heads.

Q and the output are (batch, heads, queries, d), and K and V are (batch, kv heads, keys, d). d is contiguous, and is 64,
96, 128 or 256. Other strides may have any value, and so may the numbers of queries and keys. Each kv head serves an
equal number of heads. In causal attention, each query attends to one key fewer than the next query, and the last query
to all keys. The kernel also returns the logarithm of each query's sum of exponentials, as float32.

One CTA runs on each multiprocessor, and takes tasks in sequence. A task is some queries of a head, and their keys. One
thread loads Q before its task, and loads K and V into two rings whenever a stage is free. Two or three warpgroups have
64 queries each. Q @ K.T of the next keys runs while the exponentials of the preceding keys are the weights of V. The
warpgroups take turns at the tensor cores: one computes exponentials while another multiplies.
"""

import itertools
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

# Each case is (batch, heads, kv heads, queries, keys, d, causal).
SMALL = (
    (2, 4, 2, 300, 300, 64, True),
    (1, 2, 2, 1000, 777, 128, False),
    (1, 3, 1, 200, 513, 96, True),
    (1, 2, 2, 129, 100, 256, True),
)
TOKENS = 16384  # In each large case, the batch has 16384 tokens, and all heads together have a width of 2048.
LARGE = tuple(
    (TOKENS // length, 2048 // d, 2048 // d, length, length, d, causal)
    for d in (64, 128)
    for causal in (False, True)
    for length in (2048, 4096, 8192, 16384)
)
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; accumulators and exponentials are floats
constexpr int STAGES = 2;             // stages of each ring, of K and of V
#define MASKED __int_as_float(0xFF800000)   // minus infinity

// These sizes fill the registers and shared memory.
__device__ constexpr int consumers(int d) { return d == 64 ? 3 : 2; }   // warpgroups
__device__ constexpr int keys(int d) { return d == 256 ? 80 : 128; }    // in a tile of K or V
__device__ constexpr int queues(int d) { return d == 256 ? 1 : 2; }     // stages of Q: this task and the next one

template <int D, int Rows>
using Rows_of = Tile<TYPE, Box<1, 1, Rows, D>, D % 64 == 0 ? SWIZZLE_128B : SWIZZLE_64B>;   // one head of one batch
template <int D> using Queries = Rows_of<D, 64>;
template <int D> using Keys = Rows_of<D, keys(D)>;

struct alignas(16) Task { int batch, head, first_query, key_tiles; };   // 0 tiles: the end of the list

template <int D>
struct Shared {
    Queries<D> q[queues(D)][consumers(D)];   // later the output's stage
    Keys<D> k[STAGES], v[STAGES];
    Pipeline<queues(D)> q_ring;
    Pipeline<STAGES> k_ring, v_ring;
    TaskList<Task> tasks;
};

struct Problem { int queries, keys, heads, heads_of_kv; float scale; };

template <int D>
__device__ void load_next(Keys<D> (&tiles)[STAGES], Pipeline<STAGES>& ring, Stage<STAGES>& at,
                          const TiledMap<Keys<D>>& map, const Coordinates<4>& where) {
    load(tiles[at.index], map, ring.acquire(at, tiles[0]), where);
    at.next();
}

// K is one tile ahead of V. Tiles go from last to first, because a causal mask affects the last ones.
template <int D>
__device__ void produce(Shared<D>& shared, const TiledMap<Queries<D>>& q_map, const TiledMap<Keys<D>>& k_map,
                        const TiledMap<Keys<D>>& v_map, const Task* tasks, unsigned* drawn, int count,
                        int heads_of_kv) {
    Stage<queues(D)> at_q;
    Stage<STAGES> at_k, at_v;
    for (Stage<2> turn;;) {
        const auto [batch, head, query, key_tiles] = shared.tasks.draw(turn, tasks, drawn, count);
        if (key_tiles == 0) break;
        Barrier& full = shared.q_ring.acquire(at_q, consumers(D) * Queries<D>::tx_bytes());
        for (int i = 0; i < consumers(D); ++i)
            load(shared.q[at_q.index][i], q_map, full, Coordinates{0, query + 64 * i, head, batch});
        at_q.next();
        for (int tile = key_tiles - 1; tile >= -1; --tile) {
            const Coordinates where{0, tile * keys(D), head / heads_of_kv, batch};
            if (tile >= 0) load_next<D>(shared.k, shared.k_ring, at_k, k_map, where);
            const Coordinates before{0, (tile + 1) * keys(D), head / heads_of_kv, batch};
            if (tile < key_tiles - 1) load_next<D>(shared.v, shared.v_ring, at_v, v_map, before);
        }
    }
}

// 2 ** x, within 2 units in the last place; 0 for -infinity.
__device__ inline float exp2_approx(float x) {
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}

// A thread's parts of two rows. Four threads share a row, each with every fourth pair of columns.
struct Softmax {
    float greatest[2] = {MASKED, MASKED}, sum[2] = {0, 0};   // greatest product so far; part of the sum

    // Turns scores into exponentials. Earlier sums must be multiplied by `correction`.
    template <int Count>
    __device__ void take(float (&scores)[Count], float scale, float (&correction)[2]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float most = greatest[row];
#pragma unroll
            for (int i = 2 * row; i < Count; i += 4) most = fmaxf(most, fmaxf(scores[i], scores[i + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            const float base = most == MASKED ? 0 : most * scale;   // if all are masked, the exponentials are zeros
            correction[row] = exp2_approx(greatest[row] * scale - base);
            greatest[row] = most;
            sum[row] *= correction[row];
#pragma unroll
            for (int i = 2 * row; i < Count; i += 4) {
                scores[i] = exp2_approx(fmaf(scores[i], scale, -base));
                scores[i + 1] = exp2_approx(fmaf(scores[i + 1], scale, -base));
                sum[row] += scores[i] + scores[i + 1];
            }
        }
    }

    __device__ float total(int row) const {
        const float pair = sum[row] + __shfl_xor_sync(~0u, sum[row], 1);
        return pair + __shfl_xor_sync(~0u, pair, 2);
    }
};

__device__ inline unsigned rounded(float first, float second) {
    return TYPE == FLOAT16 ? f16x2(first, second) : bf16x2(first, second);
}

// Warpgroups take turns at the tensor cores. Each waits for its own barrier, and then signals the next warpgroup's.
template <int Groups>
struct Turns {
    int group = threadIdx.x / 128;

    __device__ Turns() { if (group == Groups - 1) pass(); }
    __device__ void wait() const { named_barrier_sync(1 + group, 256); }
    __device__ void pass() const { named_barrier_arrive(1 + (group + 1) % Groups, 256); }
    __device__ void finish() const { if (group == 0) wait(); }   // the last turn of the last group
};

// 64 queries of a task.
template <int D, bool Causal>
struct Consumer {
    Shared<D>& shared;
    const Problem& problem;
    const int group = threadIdx.x / 128, row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    Turns<consumers(D)> turns;
    Stage<queues(D)> at_q;
    Stage<STAGES> at_k, at_v;
    float scores[keys(D) / 2] = {}, output[D / 2] = {};
    unsigned weights[keys(D) / 4];   // the rounded exponentials, two in each

    __device__ void start_scores() {
        shared.k_ring.wait(at_k);
        const Queries<D>& q = shared.q[at_q.index][group];
        const Keys<D>& k = shared.k[at_k.index];
        turns.wait();
        wgmma_fence(scores);
#pragma unroll
        for (int i = 0; i < D; i += 16) wgmma(scores, k_major(q, 0, i), k_major(k, 0, i), i > 0);
        wgmma_commit();
    }

    __device__ void start_output(bool accumulate) {
        shared.v_ring.wait(at_v);
        const Keys<D>& v = shared.v[at_v.index];
        wgmma_fence(output, weights);
#pragma unroll
        for (int i = 0; i < keys(D); i += 16) {
            const unsigned(&a)[4] = reinterpret_cast<const unsigned(&)[4]>(weights[i / 4]);
            wgmma(output, a, mn_major(v, i, 0), accumulate || i > 0);
        }
        wgmma_commit();
    }

    template <typename Ring, typename At>
    __device__ void release(Ring& ring, At& at) {
        if (threadIdx.x % 128 == 0) ring.release_async_read(at);
        at.next();
    }

    // Masks keys past the last key, and with `Causal` the keys that are later than each query.
    __device__ void mask(const Task& task, int tile) {
        const int first_key = tile * keys(D), first_row = task.first_query + 64 * group;
        const int later = problem.keys - problem.queries;   // the first query attends to 1 + this many keys
        if (first_key + keys(D) <= problem.keys && (!Causal || first_key + keys(D) - 1 <= first_row + later)) return;
#pragma unroll
        for (int i = 0; i < keys(D) / 2; ++i) {
            const int key = first_key + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            const int last = Causal ? first_row + row + i / 2 % 2 * 8 + later : problem.keys;
            if (key >= problem.keys || key > last) scores[i] = MASKED;
        }
    }

    __device__ void round_weights() {
#pragma unroll
        for (int i = 0; i < keys(D) / 4; ++i) weights[i] = rounded(scores[2 * i], scores[2 * i + 1]);
    }

    __device__ Softmax attend(const Task& task) {
        Softmax softmax;
        float correction[2];
        const float scale = problem.scale * 1.4426950408889634f;   // log2(e)
        shared.q_ring.wait(at_q);
        start_scores();
        turns.pass();
        wgmma_wait<0>(scores);
        release(shared.k_ring, at_k);
        mask(task, task.key_tiles - 1);
        softmax.take(scores, scale, correction);
        round_weights();
        for (int tile = task.key_tiles - 2; tile >= 0; --tile) {
            start_scores();
            start_output(tile < task.key_tiles - 2);
            turns.pass();
            wgmma_wait<1>(scores);
            release(shared.k_ring, at_k);
            mask(task, tile);
            softmax.take(scores, scale, correction);
            wgmma_wait<0>(output, weights);
            release(shared.v_ring, at_v);
#pragma unroll
            for (int i = 0; i < D / 2; ++i) output[i] *= correction[i / 2 % 2];
            round_weights();
        }
        start_output(task.key_tiles > 1);
        wgmma_wait<0>(output, weights);
        release(shared.v_ring, at_v);
        return softmax;
    }

    // Writes through the stage of Q, which only this warpgroup reads, and has read.
    __device__ void store_output(const Task& task, const Softmax& softmax, const TiledMap<Queries<D>>& map,
                                 float* lse) {
        Queries<D>& out = shared.q[at_q.index][group];
        const int first_row = task.first_query + 64 * group;
        const float total[2] = {softmax.total(0), softmax.total(1)};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int query = first_row + row + 8 * i;
            if (threadIdx.x % 4 == 0 && query < problem.queries)
                lse[(static_cast<long long>(task.batch) * problem.heads + task.head) * problem.queries + query] =
                    softmax.greatest[i] * problem.scale + logf(total[i]);
        }
        const float factor[2] = {total[0] > 0 ? 1 / total[0] : 0, total[1] > 0 ? 1 / total[1] : 0};
        const unsigned lane = threadIdx.x % 32, line = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
        for (int i = 0; i < D; i += 16) {
            unsigned m[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                m[j] = rounded(output[i / 2 + 2 * j] * factor[j % 2], output[i / 2 + 2 * j + 1] * factor[j % 2]);
            store_matrices(out.address(0, 0, line, i + lane / 16 * 8), m[0], m[1], m[2], m[3]);
        }
        fence_proxy_async();                              // each thread makes its writes visible to the TMA unit ...
        named_barrier_sync(1 + consumers(D) + group, 128);   // ... which starts after all threads have written
        if (threadIdx.x % 128 == 0) {
            store(map, Coordinates{0, first_row, task.head, task.batch}, out);   // drops rows past the last query
            commit_group();
            wait_group_read();
        }
        release(shared.q_ring, at_q);
    }
};

template <int D, bool Causal>
__global__ void __launch_bounds__(128 * (consumers(D) + 1), 1)
attention(const __grid_constant__ TiledMap<Queries<D>> q_map, const __grid_constant__ TiledMap<Keys<D>> k_map,
          const __grid_constant__ TiledMap<Keys<D>> v_map, const __grid_constant__ TiledMap<Queries<D>> output_map,
          float* lse, const Task* tasks, unsigned* drawn, int count, Problem problem) {
    auto& shared = dynamic_shared<Shared<D>>();
    if (threadIdx.x == 0) {
        shared.q_ring.init(consumers(D));
        shared.k_ring.init(consumers(D));
        shared.v_ring.init(consumers(D));
        shared.tasks.init(128 * consumers(D));
    }
    constexpr int REGISTERS = consumers(D) == 3 ? 160 : 240;
    in_roles<consumers(D), consumers(D) == 3 ? 32 : 24, REGISTERS>(
        [&] { produce(shared, q_map, k_map, v_map, tasks, drawn, count, problem.heads_of_kv); },
        [&] {
            Consumer<D, Causal> consumer{shared, problem};
            Stage<2> turn;
            for (Task task = shared.tasks.next(turn); task.key_tiles > 0; task = shared.tasks.next(turn))
                consumer.store_output(task, consumer.attend(task), output_map, lse);
            consumer.turns.finish();
        });
}
"""
CONSTANTS = {"queries": "64 * consumers({0})", "keys": "keys({0})", "threads": "128 * (consumers({0}) + 1)"}
PROBLEM = np.dtype("i4, i4, i4, i4, f4")  # The fields match the members of the structure in the kernel.
RIVALS = {"torch, cuDNN": "CUDNN_ATTENTION", "torch, FlashAttention": "FLASH_ATTENTION"}
L2_BYTES = {True: 32 << 20, False: 4 << 20}  # L2 keeps 32 MiB for causal attention, and 4 MiB for full attention.


class Attention:
    """The kernel for one value of d, with causal or full attention."""

    def __init__(self, device, d, causal):
        constants = {name: text.format(d) for name, text in CONSTANTS.items()}
        self.device, self.causal = device, causal
        self.kernel = cuda_tma.compile(SOURCE, f"attention<{d}, {str(causal).lower()}>", constants=constants)
        parameters = cuda_tma.parameters_of(self.kernel)
        self.tiling, self.dtype = SimpleNamespace(**parameters.constants), dtype_of(parameters["k_map"].map_type)

    def schedule(self, q, k):
        """Return (batch, head, first query, tiles of keys) for each task, in the order in which CTAs take the tasks.

        Tasks that share keys are near each other, if L2 has space for the keys. The longest tasks come first.
        """
        (batches, heads, queries, _), (_, _, keys, _) = q.shape, k.shape
        size, every = self.tiling.queries, [*itertools.product(range(batches), range(heads))]
        together = max(1, L2_BYTES[self.causal] // (4 * k[0, 0].numel())) * (heads // k.shape[1])
        for first in range(0, len(every), together):
            for query in reversed(range(0, queries, size)):
                seen = min(keys, query + size + keys - queries) if self.causal else keys
                tiles = max(1, -(-seen // self.tiling.keys))
                yield from ((*some, query, tiles) for some in every[first : first + together])

    def prepare(self, q, k, v, output, lse, scale=None):
        """Return a launch of output = softmax(scale * q @ k.T) @ v. The default of scale is 1 / sqrt(d)."""
        ctas = self.device.properties.multiprocessor_count
        tasks = [*self.schedule(q, k), *ctas * [(0, 0, 0, 0)]]
        memory = [torch.tensor(values, dtype=torch.int32, device="cuda") for values in (tasks, [0])]
        problem = np.zeros((), PROBLEM)
        problem[()] = q.shape[2], k.shape[2], q.shape[1], q.shape[1] // k.shape[1], scale or q.shape[3] ** -0.5
        config = LaunchConfig(grid=ctas, cluster=1, block=self.tiling.threads)
        prepared = cuda_tma.prepare(self.kernel, config, q, k, v, output, lse, *memory, len(tasks), problem[()])
        return partial(prepared, self.device.default_stream)


def check(q, k, v, output, lse, causal):
    """Compare every element with float32. Weights and sums are rounded to 8 or 11 bits."""
    unit, ratio = torch.finfo(output.dtype).eps, q.shape[1] // k.shape[1]
    for batch, head in itertools.product(*map(range, q.shape[:2])):
        scores = q[batch, head].float() @ k[batch, head // ratio].float().T * q.shape[3] ** -0.5
        if causal:
            seen = torch.ones_like(scores, dtype=torch.bool).tril(k.shape[2] - q.shape[2])
            scores = scores.masked_fill(~seen, -torch.inf)
        sums = scores.logsumexp(1)
        wanted = torch.exp(scores - sums[:, None]).nan_to_num() @ v[batch, head // ratio].float()
        torch.testing.assert_close(output[batch, head].float(), wanted, rtol=2 * unit, atol=unit)
        if lse is not None:
            torch.testing.assert_close(lse[batch, head], sums, rtol=1e-5, atol=1e-5)


def sdpa(kept, backend, q, k, v, causal):
    """Return a run of torch's attention by one of its backends. The output replaces the preceding output."""
    with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
        attention = torch.nn.functional.scaled_dot_product_attention
        kept[backend] = attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def cases(problems):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    kernel_for = cache(partial(Attention, device))
    for batches, heads, kv_heads, queries, keys, d, causal in problems:
        kernel = kernel_for(d, causal)
        q, k, v = (
            torch.randn(batches, length, some, d, device="cuda", dtype=kernel.dtype).transpose(1, 2)
            for some, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys))
        )
        output = torch.full_like(q, torch.nan)
        lse = torch.full(q.shape[:3], torch.nan, device="cuda", dtype=torch.float32)
        rivals, kept = {}, {}
        if queries == keys and q.is_cuda:
            rivals = {name: partial(sdpa, kept, backend, q, k, v, causal) for name, backend in RIVALS.items()}
        seen = (keys - (queries - 1) / 2) * queries if causal else queries * keys
        case = f"{batches} x {heads} heads ({kv_heads}), {queries} of {keys}, d {d}, {'causal' if causal else 'full'}"
        flops, moved_bytes = int(4 * batches * heads * d * seen), 2 * q.nbytes + k.nbytes + v.nbytes
        run = kernel.prepare(q, k, v, output, lse)
        yield f"{case}, {short_name(q.dtype)}", run, rivals, flops, moved_bytes
        check(q, k, v, output, lse, causal)
        for other in kept.values():
            check(q, k, v, other, None, causal)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
