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
to wait for its weights, one with many for the tensor cores: tiles of both kinds are under way at any time.
"""

import itertools
import random
from functools import partial
from types import SimpleNamespace

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

BALANCE = 100  # tokens: from about there on multiplying takes longer than reading the weights
CHECKED = (0, 1, 300, 64, 65, 0, 17, 700, 0)  # tokens of each expert
UNIFORM = random.Random(0).uniform
UNEVEN = tuple(round(2 ** UNIFORM(0, 11)) for _ in range(64))  # a skewed routing: small numbers as likely as large ones
SMALL, LARGE = ((CHECKED, 512, 200),), ((UNEVEN, 4096, 4096),)  # and rows and depth of the weights
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/roles.cuh>
#include <cuda_tma/schedule.cuh>
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

struct Expert { Map tokens, weights, output; };
struct alignas(16) Task { int expert, first_row, first_token, boxes; };   // 128 * CTAS rows; 0 boxes: there is no more

// A stage holds 64 elements of K: of the weights a box for each consumer, and then the tokens' boxes. If that is only
// one, there is room for twice as much of K: a tile that waits for its weights asks for them sooner.
__device__ constexpr int depth(int boxes) { return boxes == 1 ? 2 : 1; }
__device__ constexpr int stages_of(int boxes, int steps) { return (steps + depth(boxes) - 1) / depth(boxes); }

struct Shared {
    Square boxes[STAGES][CONSUMERS + BOXES];
    Square out[CONSUMERS][2];   // on their way out
    Pipeline<STAGES> ring;
    TaskList<Task> tiles;
};

__device__ void produce(Shared& shared, const Expert* experts, const Task* tiles, unsigned* drawn, int count,
                        int steps) {
    const int rank = cluster_cta_rank();
    Stage<STAGES> at;
    for (Stage<2> turn;;) {
        const Task tile = shared.tiles.draw(turn, tiles, drawn, count);
        if (tile.boxes == 0) break;
        const Map &tokens = experts[tile.expert].tokens, &weights = experts[tile.expert].weights;
        // The TMA unit reads maps through a proxy of its own, with a cache that ordinary writes, like those of the
        // upload, do not go through. A map that is a kernel parameter needs no fence; one in memory may be a stale
        // copy, of what was uploaded to these addresses for an earlier launch.
        fence_tensor_map_acquire(tokens);
        fence_tensor_map_acquire(weights);
        const int row = tile.first_row + 64 * CONSUMERS * rank, boxes = CONSUMERS + tile.boxes;
        for (int stage = 0; stage < stages_of(tile.boxes, steps); ++stage, at.next()) {
            // Waits until the consumers of all CTAs have released the stage, as this CTA's share of the tokens goes to
            // all. Others' shares may arrive before the bytes are expected: the count is then below zero for a while.
            Barrier& full = shared.ring.acquire(at, depth(tile.boxes) * boxes * Square::tx_bytes());
            for (int part = 0; part < depth(tile.boxes); ++part) {
                Square* to = shared.boxes[at.index] + part * boxes;
                const int k = 64 * (stage * depth(tile.boxes) + part);
                for (int i = 0; i < CONSUMERS; ++i) load(to[i], weights, full, Coordinates{k, row + 64 * i});
                for (int i = rank; i < tile.boxes; i += CTAS)
                    load_multicast(to[CONSUMERS + i], tokens, full, Coordinates{k, tile.first_token + 64 * i},
                                   (1 << CTAS) - 1);
            }
        }
    }
}

// A row of the weights is a row of the sums, and a column of the output: each warpgroup's leave transposed.
using Output = Epilogue<Square, BOXES, Turn::transposed>;

// The number of sums is part of the instruction, so there is a function for each width of a tile.
template <int Boxes>
__device__ void multiply(Shared& shared, const Task& tile, const Map& map, int steps, Stage<STAGES>& at, Output& out) {
    if constexpr (Boxes > 1)
        if (tile.boxes < Boxes) return multiply<Boxes - 1>(shared, tile, map, steps, at, out);
    const int group = threadIdx.x / 128;
    float sums[32 * Boxes] = {};
    const auto multiply_stage = [&](int stage, int step) {
#pragma unroll
        for (int part = 0; part < depth(Boxes); ++part) {
            const Square* from = shared.boxes[stage] + part * (CONSUMERS + Boxes);
            const auto& tokens = reinterpret_cast<const Boxed<Boxes>&>(from[CONSUMERS]);
#pragma unroll
            for (int k = 0; k < 64; k += 16)
                wgmma(sums, k_major(from[group], 0, k), k_major(tokens, 0, k));
        }
    };
    accumulate<CTAS>(sums, shared.ring, at, stages_of(Boxes, steps), multiply_stage, [&] { out.store_next(); });
    if (threadIdx.x % 128 == 0) fence_tensor_map_acquire(map);   // as in produce(), by the thread that stores
    const int row = tile.first_row + 64 * (CONSUMERS * int(cluster_cta_rank()) + group);
    out.take(sums, map, Coordinates{row, tile.first_token});
}

__device__ void consume(Shared& shared, const Expert* experts, int steps) {
    Output out(shared.out[threadIdx.x / 128]);
    Stage<STAGES> at;
    Stage<2> turn;
    for (Task tile = shared.tiles.next(turn); tile.boxes > 0; tile = shared.tiles.next(turn))
        multiply<BOXES>(shared, tile, experts[tile.expert].output, steps, at, out);
    out.finish();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
grouped_gemm(const Map* maps, const Task* tiles, unsigned* drawn, int count, int steps) {
    const Expert* experts = reinterpret_cast<const Expert*>(maps);
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) {
        shared.ring.init(CTAS * CONSUMERS);
        shared.tiles.init(CTAS * (128 * CONSUMERS + 1));   // consumers and the producer
    }
    in_roles<CONSUMERS, 40, 232>([&] { produce(shared, experts, tiles, drawn, count, steps); },
                                 [&] { consume(shared, experts, steps); });
}
"""
TILING = {"box": "Square::extent(0)", "depth": "Square::extent(1)", "boxes": "BOXES", "rows": "64 * CONSUMERS * CTAS"}
CONSTANTS = {**TILING, "ctas": "CTAS", "threads": "128 * (CONSUMERS + 1)"}


def schedule(tiling, sizes, rows):
    """All tiles of experts with these numbers of tokens, in the order in which clusters draw them.

    Those that share rows of the weights are neighbours. Experts that keep the memory busy, and those that keep the
    tensor cores busy, are each spread over the whole list; the small tiles of both come last, so that all clusters end
    together.
    """
    kinds = [], []
    for expert in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        boxes = -(-sizes[expert] // tiling.box)
        parts = -(-boxes // tiling.boxes)
        cuts = [tiling.box * (boxes * part // parts) for part in range(parts)] + [sizes[expert]]  # all about the same
        of_rows = [(first, -(-(last - first) // tiling.box)) for first, last in itertools.pairwise(cuts)]
        first_rows = range(0, rows, tiling.rows)
        kinds[sizes[expert] < BALANCE].extend((expert, row, *some) for row in first_rows for some in of_rows)
    placed = [((i + 0.5) / len(kind), tile) for kind in kinds for i, tile in enumerate(kind)]
    return [tile for _, tile in sorted(placed)]


def prepare(device, kernel, experts):
    """What launches output = tokens @ weights.T for each of `experts`: (tokens, weights, output)."""
    parameters = cuda_tma.parameters_of(kernel)
    tiling, (rows, depth) = SimpleNamespace(**parameters.constants), experts[0][1].shape
    maps = cuda_tma.create_tensor_maps([*itertools.chain(*experts)], parameters["maps"].map_type.options)
    clusters = device.properties.multiprocessor_count // tiling.ctas
    tiles = schedule(tiling, [len(tokens) for tokens, *_ in experts], rows) + clusters * [(0, 0, 0, 0)]
    tasks, drawn = (torch.tensor(values, dtype=torch.int32, device="cuda") for values in (tiles, [0]))
    config, stream = LaunchConfig(grid=clusters, cluster=tiling.ctas, block=tiling.threads), device.default_stream
    arguments = maps.upload(stream), tasks, drawn, len(tiles), -(-depth // tiling.depth)
    return partial(cuda_tma.launch, stream, config, kernel, *arguments)


def loop(experts):
    """The rival: a torch.matmul for each expert, into memory that is there already."""
    for tokens, weights, output in experts:
        torch.matmul(tokens, weights.T, out=output)


def grouped_mm(kept, tokens, weights, ends):
    """torch's own, for weights that lie in one tensor; its output takes the place of the one before."""
    kept[:] = [torch._grouped_mm(tokens, weights.transpose(1, 2), offs=ends)]


def cases(problems):
    """As `_example` says; what comes after `yield` checks what the last runs left.

    The routing is known on the host, and no time counts maps, schedule and upload. torch's rivals are given it too: the
    loop as Python's numbers, `torch._grouped_mm` as ends that lie on the device.
    """
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "grouped_gemm", constants=CONSTANTS)
    dtype = dtype_of(cuda_tma.parameters_of(kernel)["maps"].map_type)
    for sizes, rows, depth in problems:
        weights = torch.randn(len(sizes), rows, depth, device="cuda", dtype=dtype).div_(depth**0.5)
        tokens = torch.randn(sum(sizes), depth, device="cuda", dtype=dtype)
        output, other = (tokens.new_full((sum(sizes), rows), torch.nan) for _ in range(2))
        # An expert without tokens has nothing to do, and its maps would be refused: no extent of a map can be 0.
        experts, others = (
            [expert for expert in zip(tokens.split(sizes), weights, left.split(sizes), strict=True) if len(expert[0])]
            for left in (output, other)
        )
        rivals, kept = {"a loop of torch.matmul": partial(loop, others)}, []
        if sizes is UNEVEN:
            ends = torch.tensor(sizes, device="cuda").cumsum(0, dtype=torch.int32)
            rivals["torch._grouped_mm"] = partial(grouped_mm, kept, tokens, weights, ends)
        case = f"{len(sizes)} experts of {rows} x {depth}, {min(sizes)} to {max(sizes)} tokens, {sum(sizes)} in all"
        moved_bytes = tokens.nbytes + weights.nbytes + output.nbytes
        run = prepare(device, kernel, experts)
        yield f"{case}, {short_name(dtype)}", run, rivals, 2 * output.numel() * depth, moved_bytes
        # Every element, against fp32: half a unit in bf16 is 2**-9, and the order of sums matters a little.
        expected = torch.cat([some.float() @ of_expert.float().T for some, of_expert, _ in experts])
        for left, units in ((output, 1), *((rival, 4) for rival in (other, *kept))):
            torch.testing.assert_close(left.float(), expected, rtol=units * 2**-8, atol=units * 2**-10)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
