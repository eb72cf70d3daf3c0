"""A convolution as a matrix product that never builds the matrix: im2col loads against torch.nn.functional.conv2d.

Every output pixel is a row of a matrix with a column for each filter tap and channel. An im2col load makes a piece of
it: 128 output pixels by 64 channels of one tap, in the layout that the tensor cores read.

    output (pixels, filters) = im2col(image) (pixels, taps * channels) @ weights (filters, taps * channels).T

Tensors are bf16 and channels-last: the image lies in memory as (N, H, W, C), the weights as (K, R, S, C), and the
output as (N, P, Q, K), which is a matrix of N * P * Q rows. C is a multiple of 64, K is 256.

What a load says: the tensor map has the convolution's stride, and a box of pixels that its windows can start at, from
-padding on. `Coordinates` are where the window of the first output pixel starts; the unit goes on to the next pixels by
itself, across the ends of rows and of images. `Offsets` move all of them to one tap of the window. What is then outside
the image reads as zero: padding needs no branch here, and neither does a tile that ends in another image.

The kernel is that of gemm.py: pairs of CTAs that share the weights by multicast, and in each a thread that loads and
two warpgroups that multiply. What mattered, in microseconds (one H200, before it was warm; what it takes beside cuDNN,
warm and not, is in docs/benchmarks/kernels.md):

    190 to 167    the weights are loaded once for two CTAs
    202 to 167    they tell each other that a stage is free by an arrival that orders nothing between CTAs
    172 to 165    a tile is stored during the multiplications of the next
"""

from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

SMALL = (  # images, channels, height, width, and the window
    (3, 128, 17, 30, {"kernel_size": 5, "stride": 2, "padding": 2}),
    (2, 64, 33, 9, {"kernel_size": 3, "padding": 4, "dilation": 3}),
    (1, 64, 7, 8, {"kernel_size": 1}),
)
LARGE = ((32, 256, 56, 56, {"kernel_size": 3, "padding": 1}),)
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the sums are floats
constexpr int PIXELS = 128, FILTERS = 256, CHANNELS = 64;   // of one step: a CTA's tile is 128 x 256
constexpr int STAGES = 4;      // steps in the ring
constexpr int CTAS = 2;        // of a cluster; each loads half of the weights, for both
constexpr int CONSUMERS = 2;   // warpgroups in a CTA, 64 pixels each
constexpr int SHARE = FILTERS / CTAS;

using Image = Tile<TYPE, Box<PIXELS, CHANNELS>, SWIZZLE_128B>;
using Weights = Tile<TYPE, Box<FILTERS, CHANNELS>, SWIZZLE_128B>;
using WeightsShare = Tile<TYPE, Box<SHARE, CHANNELS>, SWIZZLE_128B>;
using Out = Tile<TYPE, Box<16, 64>, SWIZZLE_128B>;   // 16 pixels x 64 filters
using ImageMap = Im2colMap<Image, 4, OOB_FILL_NONE, L2_PROMOTION_128B>;   // of a tensor of 4 dimensions
using WeightsMap = TiledMap<WeightsShare, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    Image image[STAGES];
    Weights weights[STAGES];
    Out out[CONSUMERS * 4][2];   // of each consumer warp
    Pipeline<STAGES> ring;
};

struct Window { int height, width, kernel, stride, padding, dilation, channels; };   // height, width: of the output

__device__ void produce(Shared& shared, const ImageMap& image, const WeightsMap& weights, Window window, int tiles) {
    const int rank = cluster_cta_rank();
    Stage<STAGES> at;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int first = PIXELS * tile, q = first % window.width, p = first / window.width % window.height;
        const int n = first / window.width / window.height;
        const Coordinates corner{0, window.stride * q - window.padding, window.stride * p - window.padding, n};
        for (int tap = 0; tap < window.kernel * window.kernel; ++tap) {
            const Offsets offsets{window.dilation * (tap % window.kernel), window.dilation * (tap / window.kernel)};
            for (int c = 0; c < window.channels; c += CHANNELS, at.next()) {
                // Free means: released by the consumers of both CTAs, as this CTA's share of the weights goes to both.
                Barrier& full = shared.ring.acquire(at, shared.image[0], shared.weights[0]);
                Coordinates pixels = corner;
                pixels.value[0] = c;
                load_im2col(shared.image[at.index], image, full, pixels, offsets);
                load_multicast(shared.weights[at.index].rows<SHARE>(SHARE * rank), weights, full,
                               Coordinates{tap * window.channels + c, SHARE * rank}, (1 << CTAS) - 1);
            }
        }
    }
}

// Two sums, rounded, as registers hold them.
__device__ unsigned rounded(float first, float second) {
    if constexpr (TYPE == FLOAT16) return f16x2(first, second);
    else return bf16x2(first, second);
}

// The last tile, on its way out: a warp's 16 pixels of it. In registers, which no variable can index.
struct Output {
    static constexpr int BOXES = FILTERS / Out::width();
    unsigned pairs[FILTERS / 4];   // the sums of a thread, rounded, two in each
    int first_pixel, stored = BOXES;

    __device__ void take(const float (&sums)[FILTERS / 2], int tile) {
#pragma unroll
        for (int i = 0; i < FILTERS / 4; ++i) pairs[i] = rounded(sums[2 * i], sums[2 * i + 1]);
        first_pixel = PIXELS * tile + threadIdx.x / 32 * 16;
        stored = 0;
    }

    template <int Number>
    __device__ void store_box(Out (&buffers)[2], const TiledMap<Out>& map) const {
        const int lane = threadIdx.x % 32;
        Out& buffer = buffers[Number % 2];
        if (lane == 0) wait_group_read<1>();   // the store before last has read this buffer
        __syncwarp();
#pragma unroll
        for (int i = 0; i < Out::width() / 16; ++i) {
            // 16 x 16 elements. The swizzle spreads the 8 rows of a matrix over all banks.
            const unsigned* m = pairs + Out::width() / 4 * Number + 4 * i;
            store_matrices(buffer.address(lane % 16, 16 * i + lane / 16 * 8), m[0], m[1], m[2], m[3]);
        }
        fence_proxy_async();   // each thread: what it wrote is for the TMA unit ...
        __syncwarp();          // ... which starts when all have written
        if (lane == 0) {
            store(map, Coordinates{Out::width() * Number, first_pixel}, buffer);   // drops pixels past the last
            commit_group();
        }
    }

    template <int Number = 0>   // a function for each box, as each has its own registers
    __device__ void store_next(Out (&buffers)[2], const TiledMap<Out>& map) {
        if constexpr (Number < BOXES) {
            if (stored != Number) return store_next<Number + 1>(buffers, map);
            store_box<Number>(buffers, map);
            ++stored;
        }
    }
};

__device__ void consume(Shared& shared, const TiledMap<Out>& map, int steps, int tiles) {
    const int half = threadIdx.x / 128;
    auto& buffers = shared.out[threadIdx.x / 32];
    const auto release = [&](int index) {   // at each CTA: one arrival for the warpgroup, whose wgmma it waited for
        if (threadIdx.x % 128 < CTAS) shared.ring.empty[index].in_cta(threadIdx.x % 128).release_async_read();
    };
    Output output;
    Stage<STAGES> at;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[FILTERS / 2] = {};
        int before = 0;
        for (int step = 0; step < steps; ++step, at.next()) {
            shared.ring.wait(at);
            const Image& image = shared.image[at.index];
            const Weights& weights = shared.weights[at.index];
            wgmma_fence();   // other instructions set the sums, or read them: output.take() did
#pragma unroll
            for (int k = 0; k < CHANNELS; k += 16) wgmma(sums, k_major(image, 64 * half, k), k_major(weights, 0, k));
            wgmma_commit();
            wgmma_wait<1>();   // this step goes on; the one before is done, and its stage has been read
            if (step > 0) release(before);
            before = at.index;
            output.store_next(buffers, map);
        }
        wgmma_wait<0>(sums);
        release(before);
        while (output.stored < Output::BOXES) output.store_next(buffers, map);   // if there were fewer steps than boxes
        output.take(sums, tile);
    }
    while (output.stored < Output::BOXES) output.store_next(buffers, map);   // the last of all
    wait_group_read();   // a CTA that ends gives up its shared memory: not before the last stores have read it
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
convolution(const __grid_constant__ ImageMap image, const __grid_constant__ WeightsMap weights,
            const __grid_constant__ TiledMap<Out> output, int height, int width, int kernel, int stride, int padding,
            int dilation, int channels, int tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CTAS * CONSUMERS);
    __syncwarp();     // thread 0 comes back to its warp: the instruction wants whole warps (.aligned)
    cluster_sync();   // nobody uses a barrier, here or in the other CTA, that is not yet initialised

    const Window window{height, width, kernel, stride, padding, dilation, channels};
    if (threadIdx.x >= 128 * CONSUMERS) {
        register_dealloc<24>();   // for the consumers: 128 sums, 64 pairs and the rest are more than 65536 / 384
        if (threadIdx.x == 128 * CONSUMERS) produce(shared, image, weights, window, tiles);
    } else {
        register_alloc<240>();
        consume(shared, output, kernel * kernel * (channels / CHANNELS), tiles);
    }
    __syncwarp();
    cluster_sync();   // nor ends while the other CTA may still write to its shared memory or arrive at its barriers
}
"""


class Convolution:
    """Random image and weights, and the launch that convolves them."""

    def __init__(self, device, kernel, n, c, h, w, kernel_size, stride=1, padding=0, dilation=1):
        geometry = cuda_tma.Convolution(kernel_size, stride, padding, dilation)
        parameters = cuda_tma.parameters_of(kernel)
        dtype = dtype_of(parameters["image"].map_type)
        ctas, filters, threads = (parameters.constants[name] for name in ("ctas", "filters", "threads"))
        random, channels_last = {"device": "cuda", "dtype": dtype}, {"memory_format": torch.channels_last}
        fan_in = c * kernel_size**2
        p, q = geometry.output_extents((h, w))
        self.window = {"stride": stride, "padding": padding, "dilation": dilation}
        self.image = torch.randn(n, c, h, w, **random).to(**channels_last)
        self.weights = torch.randn(filters, c, kernel_size, kernel_size, **random).div_(fan_in**0.5).to(**channels_last)
        self.output = torch.full((n, filters, p, q), torch.nan, **random).to(**channels_last)
        self.other = None  # torch's

        image, weights, output = (x.permute(0, 2, 3, 1) for x in (self.image, self.weights, self.output))
        # The kernel's type says how many pixels and channels a column has; where the windows lie, the convolution does.
        column = parameters["image"].map_type
        corners = geometry.pixel_box_lower_corner, geometry.pixel_box_upper_corner
        strides = geometry.element_strides
        options = cuda_tma.TensorMapIm2colOptions(*corners, element_strides=strides, **column.keywords)
        maps = device.create_tensor_map(image, options), weights.view(filters, fan_in), output.view(n * p * q, filters)
        pixels, _ = column.tile_dim
        tiles = -(-n * p * q // (ctas * pixels)) * ctas  # whole clusters: a tile past the end is zeros, stored nowhere
        clusters = min(tiles, device.properties.multiprocessor_count) // ctas
        config = LaunchConfig(grid=clusters, cluster=ctas, block=threads)
        sizes = (p, q, kernel_size, stride, padding, dilation, c, tiles)
        self.run = partial(cuda_tma.prepare(kernel, config, *maps, *sizes), device.default_stream)

    def by_torch(self):
        self.other = torch.nn.functional.conv2d(self.image, self.weights, **self.window)

    def check(self):
        """Every element, against fp32: half a unit in bf16 is 2**-9, and the order of sums matters a little."""
        expected = torch.nn.functional.conv2d(self.image.float(), self.weights.float(), **self.window)
        torch.testing.assert_close(self.output.float(), expected, rtol=2**-8, atol=2**-10)
        torch.testing.assert_close(self.other.float(), expected, rtol=2**-6, atol=2**-8)


def cases(sizes):
    """As `_example` says; what comes after `yield` checks what the last runs left."""
    device = cuda_tma.Device()
    device.set_current()
    torch.backends.cudnn.benchmark = sizes is LARGE  # torch times its kernels, all of them, and takes the fastest
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = False
    constants = {"ctas": "CTAS", "filters": "FILTERS", "threads": "128 * (CONSUMERS + 1)"}
    kernel = cuda_tma.compile(SOURCE, "convolution", constants=constants)
    for n, c, h, w, window in sizes:
        one = Convolution(device, kernel, n, c, h, w, **window)
        side = window["kernel_size"]
        case = f"{n} x {h} x {w}, {c} to {len(one.weights)} channels, {side} x {side}, {short_name(one.image.dtype)}"
        flops = 2 * one.output.numel() * one.weights[0].numel()
        moved_bytes = sum(tensor.nbytes for tensor in (one.image, one.weights, one.output))
        yield case, one.run, {"torch conv2d (cuDNN)": one.by_torch}, flops, moved_bytes
        one.check()


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
