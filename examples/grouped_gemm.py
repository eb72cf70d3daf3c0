"""Many uneven matrix products in one launch, as a mixture of experts needs: tensor maps in device memory.

Each expert has its own (N, K) weight tensor, wherever it lies; the tokens of all experts are rows of one packed matrix,
those of expert 0 first, and so are the outputs:

    for each expert:  output[its rows] = tokens[its rows] @ weights[expert].T

That is three tensors for each expert, and 64 experts would make 192 kernel parameters of 128 bytes. So the maps lie in
an array in device memory, filled by one upload, and the kernel picks the three that its tile needs. A map of a view of
the packed rows ends where the view ends: loads read zeros behind an expert's last row, and stores drop them, so that no
tile spoils the rows of the next expert. An expert that got no tokens has no maps, and no tiles ask for them.

The kernel is that of gemm.py, turned round: it multiplies weights by tokens, so that the tokens, of which there may be
1 or 2000, are the side of the tile that comes in four widths, and few tokens cost little. An expert with few tokens has
to wait for its weights, one with many for the tensor cores: tiles of both kinds are under way at any time. Where that
ends is plain: the 64 weights take 0.5 ms to read, and the products of 21452 tokens 1.0 ms at the 690 TFLOP/s that a
large matrix product sustains (one H200), with all tiles full.
"""

import itertools
import random
from functools import partial
from typing import NamedTuple

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

BALANCE = 100  # tokens: from about there on multiplying takes longer than reading the weights
CHECKED = (0, 1, 300, 64, 65, 0, 17, 700, 0)  # tokens of the experts of the small case
SMALL, LARGE = ((CHECKED, 512, 200),), ((None, 4096, 4096),)  # tokens, None for uneven(), rows and depth of weights
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;
constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the sums are floats
template <int Boxes>
using Boxed = Tile<TYPE, Box<64 * Boxes, 64>, SWIZZLE_128B>;
using Square = Boxed<1>;       // what every load and store moves: 8 KB; several, one behind the other, are one Boxed
static_assert(Square::boxes() == 1, "or else several are no Boxed");
using Map = TiledMap<Square, OOB_FILL_NONE, L2_PROMOTION_256B>;

constexpr int CTAS = 2;        // of a cluster: they share the tokens of a tile, and each has 128 rows of the weights
constexpr int CONSUMERS = 2;   // warpgroups in a CTA, 64 rows of the weights each
constexpr int BOXES = 4;       // of 64 tokens, at most, in a tile
constexpr int STAGES = 4;      // of the ring, 6 boxes each
constexpr int TURNS = 8;       // places for what to do
constexpr unsigned short ALL = (1 << CTAS) - 1;

struct Expert { Map tokens, weights, output; };
struct alignas(16) Task { int expert, first_row, first_token, boxes; };   // 128 * CTAS rows; 0 boxes: there is no more

// A stage holds 64 elements of K: of the weights a box for each consumer, and then the tokens' boxes. If that is only
// one, there is room for twice as much of K. Such a tile waits for the weights, and the more of them are on their way,
// the shorter: 20 us instead of 30 (one H200).
__device__ constexpr int depth(int boxes) { return boxes == 1 ? 2 : 1; }
__device__ constexpr int stages_of(int boxes, int steps) { return (steps + depth(boxes) - 1) / depth(boxes); }

struct Shared {
    Square boxes[STAGES][CONSUMERS + BOXES];
    Square out[CONSUMERS][2];     // on their way out
    Pipeline<STAGES> ring;
    Task tiles[TURNS];
    Pipeline<TURNS> turns;     // a tile is read by ordinary loads, of which release() tells the CTA that deals
};

// All clusters draw from one list, so that whoever is through first gets the next tile. The first CTA draws for all of
// its cluster: atomicInc counts to the last tile, then to an end for each cluster, and then from 0 for the next launch.
// It takes a while, in which the consumers have a ring full of work. Launches at the same time need a counter each.
__device__ void deal(Shared& shared, const Task* tiles, unsigned* drawn, int count, Stage<TURNS> turn) {
    const unsigned number = atomicInc(drawn, count - 1);
    shared.turns.empty[turn.index].wait_cluster(turn.parity ^ 1);   // all in both CTAs have read what was there
    load_bulk_multicast(&shared.tiles[turn.index], tiles + number, sizeof(Task), shared.turns.full[turn.index], ALL);
}
// To each who reads it.
__device__ Task dealt(Shared& shared, Stage<TURNS> turn) {
    shared.turns.wait(turn);
    const Task tile = shared.tiles[turn.index];
    shared.turns.release(turn, 0);
    return tile;
}

__device__ void produce(Shared& shared, const Expert* experts, const Task* tiles, unsigned* drawn, int count,
                        int steps) {
    const int rank = cluster_cta_rank();
    Stage<STAGES> at;
    Stage<TURNS> turn;
    for (;; turn.next()) {
        if (rank == 0) deal(shared, tiles, drawn, count, turn);
        shared.turns.full[turn.index].arrive_expect_tx(sizeof(Task));
        const Task tile = dealt(shared, turn);
        if (tile.boxes == 0) break;
        const Map &tokens = experts[tile.expert].tokens, &weights = experts[tile.expert].weights;
        // The TMA unit reads maps through a proxy of its own, with a cache that ordinary writes, like those of the
        // upload, do not go through. A map that is a kernel parameter needs no fence; one in memory may be a stale
        // copy, of what was uploaded to these addresses for an earlier launch.
        fence_tensor_map_acquire(tokens);
        fence_tensor_map_acquire(weights);
        const int row = tile.first_row + 64 * CONSUMERS * rank, boxes = CONSUMERS + tile.boxes;
        const int stages = stages_of(tile.boxes, steps);
        for (int stage = 0; stage < stages; ++stage, at.next()) {
            // Waits until the consumers of all CTAs have released the stage, as this CTA's share of the tokens goes to
            // all. Others' shares may arrive before the bytes are expected: the count is then below zero for a while.
            Barrier& full = shared.ring.acquire(at, depth(tile.boxes) * boxes * Square::tx_bytes());
            for (int part = 0; part < depth(tile.boxes); ++part) {
                Square* to = shared.boxes[at.index] + part * boxes;
                const int k = 64 * (stage * depth(tile.boxes) + part);
                for (int i = 0; i < CONSUMERS; ++i) load(to[i], weights, full, Coordinates{k, row + 64 * i});
                for (int i = rank; i < tile.boxes; i += CTAS)
                    load_multicast(to[CONSUMERS + i], tokens, full, Coordinates{k, tile.first_token + 64 * i}, ALL);
            }
        }
    }
}

// Two sums, rounded, as registers hold them.
__device__ unsigned rounded(float first, float second) {
    if constexpr (TYPE == FLOAT16) return f16x2(first, second);
    else return bf16x2(first, second);
}

// The last tile, on its way out: a warpgroup's 64 rows of the weights, for each token. In registers, which no variable
// can index.
struct Output {
    unsigned pairs[16 * BOXES];   // the sums of a thread, rounded, two in each
    const Map* map;
    int row, token;
    int stored = 0, boxes = 0;

    template <int Count>
    __device__ void take(const float (&sums)[Count], const Map& output, const Task& tile) {
#pragma unroll
        for (int i = 0; i < Count / 2; ++i) pairs[i] = rounded(sums[2 * i], sums[2 * i + 1]);
        map = &output;
        row = tile.first_row + 64 * (CONSUMERS * int(cluster_cta_rank()) + int(threadIdx.x) / 128);
        token = tile.first_token;
        stored = 0;
        boxes = tile.boxes;
        if (threadIdx.x % 128 == 0) fence_tensor_map_acquire(*map);   // as in produce(), by the thread that stores
    }

    template <int Index>
    __device__ void store_box(Square (&buffers)[2]) const {
        const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, group = threadIdx.x / 128;
        Square& buffer = buffers[Index % 2];
        if (thread == 0) wait_group_read<1>();   // the store before last has read this buffer
        named_barrier_sync(1 + group, 128);
        // 16 x 16 elements; the swizzle spreads the 8 rows of a matrix over all banks. Transposed: the sums have a row
        // for each row of the weights, and the output has one for each token.
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned* m = pairs + 16 * Index + 4 * i;
            const unsigned token = 16 * i + lane / 16 * 8 + lane % 8, row = 16 * warp + lane / 8 % 2 * 8;
            store_matrices_transposed(buffer.address(token, row), m[0], m[1], m[2], m[3]);
        }
        fence_proxy_async();                  // each thread: what it wrote is for the TMA unit ...
        named_barrier_sync(1 + group, 128);   // ... which starts when all have written
        if (thread == 0) {
            store(*map, Coordinates{row, token + 64 * Index}, buffer);   // drops tokens past the expert's last
            commit_group();
        }
    }

    __device__ bool pending() const { return stored < boxes; }

    __device__ void store_next(Square (&buffers)[2]) {
        switch (stored) {
            case 0: store_box<0>(buffers); break;
            case 1: store_box<1>(buffers); break;
            case 2: store_box<2>(buffers); break;
            default: store_box<3>(buffers);
        }
        ++stored;
    }
};

// The number of sums is part of the instruction, so there is a function for each width of a tile.
template <int Boxes>
__device__ void multiply(Shared& shared, const Task& tile, const Map& map, int steps, Stage<STAGES>& at,
                         Output& output) {
    if (tile.boxes != Boxes) {
        if constexpr (Boxes > 1) multiply<Boxes - 1>(shared, tile, map, steps, at, output);
        return;
    }
    const int half = threadIdx.x / 128;
    const auto release = [&](int index) {   // at each CTA: one arrival for the warpgroup, whose wgmma it waited for
        if (threadIdx.x % 128 < CTAS) shared.ring.empty[index].in_cta(threadIdx.x % 128).release_async_read();
    };
    float sums[32 * Boxes] = {};
    int before = 0;
    for (int stage = 0; stage < stages_of(Boxes, steps); ++stage, at.next()) {
        shared.ring.wait(at);
        wgmma_fence();   // other instructions set the sums, or read them: output.take() did
#pragma unroll
        for (int part = 0; part < depth(Boxes); ++part) {
            const Square* from = shared.boxes[at.index] + part * (CONSUMERS + Boxes);
            const auto& weights = from[half];
            const auto& tokens = reinterpret_cast<const Boxed<Boxes>&>(from[CONSUMERS]);
#pragma unroll
            for (int k = 0; k < 64; k += 16) wgmma(sums, k_major(weights, 0, k), k_major(tokens, 0, k));
        }
        wgmma_commit();
        wgmma_wait<1>();   // these go on; those before are done, and their stage has been read
        if (stage > 0) release(before);
        before = at.index;
        if (output.pending()) output.store_next(shared.out[half]);
    }
    wgmma_wait<0>(sums);
    release(before);
    while (output.pending()) output.store_next(shared.out[half]);   // if there were fewer stages than boxes
    output.take(sums, map, tile);
}

__device__ void consume(Shared& shared, const Expert* experts, int steps) {
    Output output;
    Stage<STAGES> at;
    for (Stage<TURNS> turn;; turn.next()) {
        const Task tile = dealt(shared, turn);
        if (tile.boxes == 0) break;
        multiply<BOXES>(shared, tile, experts[tile.expert].output, steps, at, output);
    }
    while (output.pending()) output.store_next(shared.out[threadIdx.x / 128]);   // the last of all
    wait_group_read();   // a CTA that ends gives up its shared memory: not before the last stores have read it
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
grouped_gemm(const Map* maps, const Task* tiles, unsigned* drawn, int count, int steps) {
    const Expert* experts = reinterpret_cast<const Expert*>(maps);
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) {
        shared.turns.init(CTAS * (128 * CONSUMERS + 1));   // consumers and the producer
        shared.ring.init(CTAS * CONSUMERS);
    }
    __syncwarp();     // thread 0 comes back to its warp: the instruction wants whole warps (.aligned)
    cluster_sync();   // nobody uses a barrier, here or in another CTA, that is not yet initialised

    if (threadIdx.x >= 128 * CONSUMERS) {
        register_dealloc<40>();   // for the consumers: 128 sums, 64 pairs and the rest are more than 65536 / 384
        if (threadIdx.x == 128 * CONSUMERS) produce(shared, experts, tiles, drawn, count, steps);
    } else {
        register_alloc<232>();
        consume(shared, experts, steps);
    }
    __syncwarp();
    cluster_sync();   // nor ends while another CTA may still write to its shared memory or arrive at its barriers
}
"""


class Tiling(NamedTuple):
    """What the kernel's tiles are, as it says itself."""

    box: int  # rows, or tokens, in what a load moves
    depth: int  # of K
    boxes: int  # of tokens, at most, in a tile
    rows: int  # of the weights, which a cluster has of each tile


def tiling_of(kernel):
    parameters = cuda_tma.parameters_of(kernel)
    box, depth = parameters["maps"].map_type.tile_dim
    return Tiling(box, depth, parameters.constants["boxes"], box * parameters.constants["consumers"])


def tiles_of(tiling, expert, tokens, rows):
    """(expert, first row of the weights, first token, boxes): those that share rows of the weights in turn."""
    boxes = -(-tokens // tiling.box)
    parts = -(-boxes // tiling.boxes)
    cuts = [tiling.box * (boxes * part // parts) for part in range(parts)] + [tokens]  # all about the same
    for row in range(0, rows, tiling.rows):
        for first, last in itertools.pairwise(cuts):
            yield expert, row, first, -(-(last - first) // tiling.box)


def schedule(tiling, sizes, rows):
    """All tiles of experts with these numbers of tokens, in the order in which clusters draw them.

    Experts that keep the memory busy, and those that keep the tensor cores busy, are each spread over the whole list.
    The small tiles of both come last, so that all clusters end together.
    """
    by_size = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
    kinds = [], []
    for expert in by_size:
        kinds[sizes[expert] < BALANCE].extend(tiles_of(tiling, expert, sizes[expert], rows))
    placed = [((i + 0.5) / len(kind), tile) for kind in kinds for i, tile in enumerate(kind)]
    return [tile for _, tile in sorted(placed)]


def compiled():
    """The kernel, which knows its tiles and its shared memory, and what its host asks beside."""
    names = {"ctas": "CTAS", "boxes": "BOXES", "consumers": "CTAS * CONSUMERS", "threads": "128 * (CONSUMERS + 1)"}
    return cuda_tma.compile(SOURCE, "grouped_gemm", constants=names)


class GroupedGemm:
    """Random tokens for experts with these numbers of them, and the launch that multiplies them by the weights."""

    def __init__(self, device, kernel, weights, sizes):
        rows, depth = weights[0].shape
        self.sizes = sizes
        self.tokens = torch.randn(sum(sizes), depth, device="cuda", dtype=weights[0].dtype)
        self.output, self.other = (self.tokens.new_full((sum(sizes), rows), torch.nan) for _ in range(2))
        self.others = [other for other in self.other.split(sizes) if len(other)]
        self.grouped = None  # what torch._grouped_mm gave
        experts = zip(self.tokens.split(sizes), weights, self.output.split(sizes), strict=True)
        # An expert without tokens has nothing to do, and its maps would be refused: no extent of a map can be 0.
        self.experts = [(tokens, *others) for tokens, *others in experts if len(tokens)]
        parameters, tiling = cuda_tma.parameters_of(kernel), tiling_of(kernel)
        ctas, threads = parameters.constants["ctas"], parameters.constants["threads"]
        tensors = [tensor for expert in self.experts for tensor in expert]
        maps = cuda_tma.create_tensor_maps(tensors, parameters["maps"].map_type.options)
        clusters = device.properties.multiprocessor_count // ctas
        tiles = schedule(tiling, [len(tokens) for tokens, *_ in self.experts], rows) + clusters * [(0, 0, 0, 0)]
        drawn = torch.zeros(1, dtype=torch.int32, device="cuda")
        config = LaunchConfig(grid=clusters, cluster=ctas, block=threads)
        stream = device.default_stream
        arrays = maps.upload(stream), torch.tensor(tiles, dtype=torch.int32, device="cuda"), drawn
        self.arguments = (stream, config, kernel, *arrays, len(tiles), -(-depth // tiling.depth))

    def run(self):
        cuda_tma.launch(*self.arguments)

    def loop(self):
        """The rival: a torch.matmul for each expert, into memory that is there already."""
        for (tokens, weights, _), other in zip(self.experts, self.others, strict=True):
            torch.matmul(tokens, weights.T, out=other)

    def grouped_mm(self, stacked, ends):
        """torch's own, for weights that lie in one tensor (experts, N, K)."""
        self.grouped = torch._grouped_mm(self.tokens, stacked.transpose(1, 2), offs=ends)

    def check(self):
        """Every element, against fp32: half a unit in bf16 is 2**-9, and the order of sums matters a little."""
        first = 0
        for tokens, weights, output in self.experts:
            expected, rows = tokens.float() @ weights.float().T, slice(first, first + len(tokens))
            torch.testing.assert_close(output.float(), expected, rtol=2**-8, atol=2**-10)
            for rival in (self.other, self.grouped):
                if rival is not None:
                    torch.testing.assert_close(rival[rows].float(), expected, rtol=2**-6, atol=2**-8)
            first += len(tokens)


def uneven(experts=64):
    """Tokens of each expert, by a skewed routing: 1 to 2048, small numbers as likely as large ones."""
    generator = random.Random(0)
    return [round(2 ** generator.uniform(0, 11)) for _ in range(experts)]


def case(sizes, weights):
    experts, rows, depth = weights.shape
    tokens = f"{min(sizes)} to {max(sizes)} tokens, {sum(sizes)} in all"
    return f"{experts} experts of {rows} x {depth}, {tokens}, {short_name(weights.dtype)}"


def cases(problems):
    """As `_example` says; what comes after `yield` checks what the last runs left.

    The routing is known on the host: maps, schedule and upload are made before, and no time counts them. torch's rivals
    are given it, too: the loop as Python's numbers, `torch._grouped_mm` as ends that lie on the device.
    """
    device = cuda_tma.Device()
    device.set_current()
    kernel = compiled()
    dtype = dtype_of(cuda_tma.parameters_of(kernel)["maps"].map_type)
    for tokens, rows, depth in problems:
        sizes = uneven() if tokens is None else list(tokens)
        stacked = torch.randn(len(sizes), rows, depth, device="cuda", dtype=dtype).div_(depth**0.5)
        one = GroupedGemm(device, kernel, list(stacked), sizes)
        rivals = {"a loop of torch.matmul": one.loop}
        if tokens is None:
            ends = torch.tensor(sizes, device="cuda").cumsum(0, dtype=torch.int32)
            rivals["torch._grouped_mm"] = partial(one.grouped_mm, stacked, ends)
        moved_bytes = one.tokens.nbytes + stacked.nbytes + one.output.nbytes
        yield case(sizes, stacked), one.run, rivals, 2 * one.output.numel() * depth, moved_bytes
        one.check()


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
