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

from _example import compile_kernel, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

PIXELS, FILTERS, CHANNELS, STAGES, CTAS = 128, 256, 64, 4, 2  # as in the kernel
SMEM_BYTES = STAGES * (PIXELS + FILTERS) * CHANNELS * 2 + 8 * 2 * 16 * 128 + 64
SMALL = (  # images, channels, height, width, and the window
    (3, 128, 17, 30, {"kernel_size": 5, "stride": 2, "padding": 2}),
    (2, 64, 33, 9, {"kernel_size": 3, "padding": 4, "dilation": 3}),
    (1, 64, 7, 8, {"kernel_size": 1}),
)
LARGE = ((32, 256, 56, 56, {"kernel_size": 3, "padding": 1}),)
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;
using bf16 = unsigned short;

constexpr int PIXELS = 128, FILTERS = 256, CHANNELS = 64;   // of one step: a CTA's tile is 128 x 256
constexpr int STAGES = 4;      // steps in the ring
constexpr int CTAS = 2;        // of a cluster; each loads half of the weights, for both
constexpr int CONSUMERS = 2;   // warpgroups in a CTA, 64 pixels each
constexpr int SHARE = FILTERS / CTAS;

struct Shared {   // each tile a multiple of 1024 bytes, where the swizzle pattern starts
    bf16 image[STAGES][PIXELS][CHANNELS];
    bf16 weights[STAGES][FILTERS][CHANNELS];
    bf16 out[CONSUMERS * 4][2][16][64];   // of each consumer warp: two boxes of 16 pixels x 64 filters
    Pipeline<STAGES> ring;
};
constexpr unsigned STEP_BYTES = sizeof(Shared::image[0]) + sizeof(Shared::weights[0]);

struct Window { int height, width, kernel, stride, padding, dilation, channels; };   // height, width: of the output

__device__ void produce(Shared& shared, const TensorMap& image, const TensorMap& weights, Window window, int tiles) {
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
                Barrier& full = shared.ring.acquire(at, STEP_BYTES);
                Coordinates pixels = corner;
                pixels.value[0] = c;
                load_im2col(shared.image[at.index], image, full, pixels, offsets);
                load_multicast(shared.weights[at.index][SHARE * rank], weights, full,
                               Coordinates{tap * window.channels + c, SHARE * rank}, (1 << CTAS) - 1);
            }
        }
    }
}

// The last tile, on its way out: a warp's 16 pixels of it. In registers, which no variable can index.
struct Output {
    static constexpr int BOXES = FILTERS / 64;
    unsigned pairs[FILTERS / 4];   // the sums of a thread, rounded, two in each
    int first_pixel, stored = BOXES;

    __device__ void take(const float (&sums)[FILTERS / 2], int tile) {
#pragma unroll
        for (int i = 0; i < FILTERS / 4; ++i) pairs[i] = bf16x2(sums[2 * i], sums[2 * i + 1]);
        first_pixel = PIXELS * tile + threadIdx.x / 32 * 16;
        stored = 0;
    }

    template <int Box>
    __device__ void store_box(bf16 (*buffers)[16][64], const TensorMap& map) const {
        const int lane = threadIdx.x % 32;
        const auto buffer = buffers[Box % 2];
        if (lane == 0) wait_group_read<1>();   // the store before last has read this buffer
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {   // 16 x 16 elements; the swizzle spreads the 8 rows of a matrix over all banks
            const unsigned* m = pairs + 16 * Box + 4 * i;
            const unsigned offset = swizzled<SWIZZLE_128B>(lane % 16, 32 * i + lane / 16 * 16);
            store_matrices(smem_address(buffer) + offset, m[0], m[1], m[2], m[3]);
        }
        fence_proxy_async();   // each thread: what it wrote is for the TMA unit ...
        __syncwarp();          // ... which starts when all have written
        if (lane == 0) {
            store(map, Coordinates{64 * Box, first_pixel}, buffer);   // drops pixels past the last
            commit_group();
        }
    }

    __device__ void store_next(bf16 (*buffers)[16][64], const TensorMap& map) {
        switch (stored) {
            case 0: store_box<0>(buffers, map); break;
            case 1: store_box<1>(buffers, map); break;
            case 2: store_box<2>(buffers, map); break;
            case 3: store_box<3>(buffers, map); break;
            default: return;
        }
        ++stored;
    }
};

__device__ void consume(Shared& shared, const TensorMap& map, int steps, int tiles) {
    const int half = threadIdx.x / 128;
    const auto buffers = shared.out[threadIdx.x / 32];
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
            const auto image = k_major(shared.image[at.index][64 * half]), weights = k_major(shared.weights[at.index]);
            wgmma_fence();   // other instructions set the sums, or read them: output.take() did
#pragma unroll
            for (int k = 0; k < CHANNELS; k += 16) wgmma(sums, image.advance(2 * k), weights.advance(2 * k));
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
convolution(const __grid_constant__ TensorMap image, const __grid_constant__ TensorMap weights,
            const __grid_constant__ TensorMap output, int height, int width, int kernel, int stride, int padding,
            int dilation, int channels, int tiles) {
    extern __shared__ __align__(1024) char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
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
        random, channels_last = {"device": "cuda", "dtype": torch.bfloat16}, {"memory_format": torch.channels_last}
        fan_in = c * kernel_size**2
        p, q = geometry.output_extents((h, w))
        self.window = {"stride": stride, "padding": padding, "dilation": dilation}
        self.image = torch.randn(n, c, h, w, **random).to(**channels_last)
        self.weights = torch.randn(FILTERS, c, kernel_size, kernel_size, **random).div_(fan_in**0.5).to(**channels_last)
        self.output = torch.full((n, FILTERS, p, q), torch.nan, **random).to(**channels_last)
        self.other = None  # torch's

        image_options = cuda_tma.TensorMapIm2colOptions.from_convolution(
            geometry, channels_per_pixel=CHANNELS, pixels_per_column=PIXELS, l2_promotion="128B"
        )
        weights_options = cuda_tma.TensorMapOptions((FILTERS // CTAS, CHANNELS), swizzle="128B", l2_promotion="128B")
        output_options = cuda_tma.TensorMapOptions((16, 64), swizzle="128B")
        image, weights, output = (x.permute(0, 2, 3, 1) for x in (self.image, self.weights, self.output))
        maps = (
            device.create_tensor_map(image, image_options),
            device.create_tensor_map(weights.view(FILTERS, fan_in), weights_options),
            device.create_tensor_map(output.view(n * p * q, FILTERS), output_options),
        )
        tiles = -(-n * p * q // (CTAS * PIXELS)) * CTAS  # whole clusters: a tile past the end is zeros, stored nowhere
        clusters = min(tiles, device.properties.multiprocessor_count) // CTAS
        config = LaunchConfig(grid=clusters, cluster=CTAS, block=384, shmem_size=SMEM_BYTES)
        sizes = (p, q, kernel_size, stride, padding, dilation, c, tiles)
        self.arguments = (device.default_stream, config, kernel, *maps, *sizes)

    def run(self):
        cuda_tma.launch(*self.arguments)

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
    kernel = compile_kernel(device, SOURCE, "convolution", SMEM_BYTES)
    for n, c, h, w, window in sizes:
        one = Convolution(device, kernel, n, c, h, w, **window)
        side = window["kernel_size"]
        case = f"{n} x {h} x {w}, {c} to {FILTERS} channels, {side} x {side}, bf16"
        flops = 2 * one.output.numel() * one.weights[0].numel()
        moved_bytes = sum(tensor.nbytes for tensor in (one.image, one.weights, one.output))
        yield case, one.run, {"torch conv2d (cuDNN)": one.by_torch}, flops, moved_bytes
        one.check()


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
