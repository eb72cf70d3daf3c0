"""Compute a convolution as a matrix product by im2col loads, which never build the matrix, in comparison with torch's
conv2d.

Every output pixel is a row of a matrix with a column for each filter tap and channel. An im2col load makes a part of
this matrix: 128 output pixels by 64 channels of one tap, in the layout that the tensor cores read. The output is the
product of this matrix, (pixels, taps * channels), and of the transposed weights, (filters, taps * channels).

Tensors are bf16 and channels-last. The images are (N, H, W, C), the weights (K, R, S, C), and the output (N, P, Q, K),
which is a matrix of N * P * Q rows. C is a multiple of 64, and K is 256.

The tensor map contains the convolution's stride, and the box of pixels at which windows can start. The box begins at
-padding. In a load, `Coordinates` are the start of the window of the first output pixel. The TMA unit continues with
the next pixels, across the ends of rows and images. `Offsets` move all of these pixels to one tap of the window. Pixels
outside the image read as zero. Therefore neither padding nor a tile that ends in another image needs a branch.

The program uses the kernel of gemm.py. The kernel has pairs of CTAs that share the weights by multicast. Each CTA has a
thread that loads, and two warpgroups that multiply. The page docs/kernels.md lists the gain of each part.
"""

from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

# Each case is (images, channels, height, width, window), and a window is (side, stride, padding, dilation).
SMALL = ((3, 128, 17, 30, (5, 2, 2, 1)), (2, 64, 33, 9, (3, 1, 4, 3)), (1, 64, 7, 8, (1, 1, 0, 1)))
LARGE = ((32, 256, 56, 56, (3, 1, 1, 1)),)
TARGETS = ("sm_90a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mainloop.cuh>
#include <cuda_tma/roles.cuh>
using namespace cuda_tma;

constexpr DataType TYPE = BFLOAT16;   // or FLOAT16; the accumulators are floats
constexpr int PIXELS = 128, FILTERS = 256, CHANNELS = 64;   // for one step: a CTA's tile is 128 x 256
constexpr int STAGES = 4;      // steps in the ring
constexpr int CTAS = 2, SHARE = FILTERS / CTAS;   // CTAs of a cluster; each loads a share of the weights for both
constexpr int CONSUMERS = 2;   // warpgroups in a CTA, 64 pixels each

using Image = Tile<TYPE, Box<PIXELS, CHANNELS>, SWIZZLE_128B>;
using Weights = Tile<TYPE, Box<FILTERS, CHANNELS>, SWIZZLE_128B>;
using WeightsShare = Tile<TYPE, Box<SHARE, CHANNELS>, SWIZZLE_128B>;
using Out = Tile<TYPE, Box<16, 64>, SWIZZLE_128B>;   // a warp's 16 pixels x 64 filters
using ImageMap = Im2colMap<Image, 4, OOB_FILL_NONE, L2_PROMOTION_128B>;   // a tensor of 4 dimensions
using WeightsMap = TiledMap<WeightsShare, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    Image image[STAGES];
    Weights weights[STAGES];
    Out out[CONSUMERS * 4][2];   // two parts for each consumer warp
    Pipeline<STAGES> ring;
};

struct Window { int height, width, kernel, stride, padding, dilation, channels; };   // height and width of the output

__device__ void produce(Shared& shared, const ImageMap& image, const WeightsMap& weights, Window window, int tiles) {
    const int rank = cluster_cta_rank();
    Stage<STAGES> at;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int first = PIXELS * tile, q = first % window.width, p = first / window.width % window.height;
        const int n = first / window.width / window.height;
        const int left = window.stride * q - window.padding, top = window.stride * p - window.padding;
        for (int tap = 0; tap < window.kernel * window.kernel; ++tap) {
            const Offsets offsets{window.dilation * (tap % window.kernel), window.dilation * (tap / window.kernel)};
            for (int c = 0; c < window.channels; c += CHANNELS, at.next()) {
                // The consumers of both CTAs release a stage, because both receive this CTA's weights.
                Barrier& full = shared.ring.acquire(at, shared.image[0], shared.weights[0]);
                load_im2col(shared.image[at.index], image, full, Coordinates{c, left, top, n}, offsets);
                load_multicast(shared.weights[at.index].rows<SHARE>(SHARE * rank), weights, full,
                               Coordinates{tap * window.channels + c, SHARE * rank}, (1 << CTAS) - 1);
            }
        }
    }
}

__device__ void consume(Shared& shared, const TiledMap<Out>& map, int steps, int tiles) {
    const int first_pixel = threadIdx.x / 128 * 64;   // of the warpgroup
    Epilogue<Out, FILTERS / Out::width()> out(shared.out[threadIdx.x / 32]);
    float sums[FILTERS / 2] = {};   // of the present tile: its first step overwrites them
    Stage<STAGES> at;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const auto multiply = [&](int stage, int step) {
            const Image& image = shared.image[stage];
            const Weights& weights = shared.weights[stage];
#pragma unroll
            for (int k = 0; k < CHANNELS; k += 16)
                wgmma(sums, k_major(image, first_pixel, k), k_major(weights, 0, k), step + k > 0);
        };
        accumulate<CTAS>(sums, shared.ring, at, steps, multiply, [&] { out.store_next(); });
        out.take(sums, map, Coordinates{0, PIXELS * tile + first_pixel});   // stored during the next tile
    }
    out.finish();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
convolution(const __grid_constant__ ImageMap image, const __grid_constant__ WeightsMap weights,
            const __grid_constant__ TiledMap<Out> output, int height, int width, int kernel, int stride, int padding,
            int dilation, int channels, int tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CTAS * CONSUMERS);
    const Window window{height, width, kernel, stride, padding, dilation, channels};
    // Registers: the consumers' 128 accumulators, 64 pairs and the rest are more than 65536 / 384.
    in_roles<CONSUMERS, 24, 240>([&] { produce(shared, image, weights, window, tiles); },
                                 [&] { consume(shared, output, kernel * kernel * (channels / CHANNELS), tiles); });
}
"""
CONSTANTS = {"ctas": "CTAS", "filters": "FILTERS", "threads": "128 * (CONSUMERS + 1)"}


def prepare(device, kernel, image, weights, output, window):
    """Return a launch of the convolution, for tensors (N, C, H, W) that are channels-last."""
    geometry, parameters = cuda_tma.Convolution(*window), cuda_tma.parameters_of(kernel)
    column, (ctas, filters, threads) = parameters["image"].map_type, map(parameters.constants.get, CONSTANTS)
    image, weights, output = (tensor.permute(0, 2, 3, 1) for tensor in (image, weights, output))
    # The map's type in the kernel fixes the pixels and channels of a column, and the convolution fixes the corners.
    corners = geometry.pixel_box_lower_corner, geometry.pixel_box_upper_corner
    options = cuda_tma.TensorMapIm2colOptions(*corners, element_strides=geometry.element_strides, **column.keywords)
    tensors = device.create_tensor_map(image, options), weights.view(filters, -1), output.view(-1, filters)
    # A tile beyond the end of the tensor contains zeros, and the kernel does not store it.
    clusters = -(-len(tensors[-1]) // (ctas * column.tile_dim[0]))
    grid = min(clusters, device.properties.multiprocessor_count // ctas)
    sizes = *output.shape[1:3], *window, image.shape[-1], clusters * ctas
    config = LaunchConfig(grid=grid, cluster=ctas, block=threads)
    return partial(cuda_tma.prepare(kernel, config, *tensors, *sizes), device.default_stream)


def by_torch(kept, *arguments):
    """Return a run of torch's convolution. The output replaces the preceding output."""
    kept["output"] = torch.nn.functional.conv2d(*arguments)


def cases(sizes):
    """Yield cases as `_example` describes them. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    torch.backends.cudnn.benchmark = sizes is LARGE  # With this setting, torch uses its fastest convolution.
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = False
    kernel = cuda_tma.compile(SOURCE, "convolution", constants=CONSTANTS)
    parameters = cuda_tma.parameters_of(kernel)
    filters, dtype = parameters.constants["filters"], dtype_of(parameters["image"].map_type)
    for n, c, h, w, window in sizes:
        side, extents = window[0], cuda_tma.Convolution(*window).output_extents((h, w))
        image, weights, output = (
            torch.randn(*shape, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
            for shape in ((n, c, h, w), (filters, c, side, side), (n, filters, *extents))
        )
        weights.div_((c * side**2) ** 0.5)
        run = prepare(device, kernel, image, weights, output.fill_(torch.nan), window)
        other, conv2d = {}, (None, *window[1:])  # The values are the bias, the stride, the padding and the dilation.
        rivals = {"torch conv2d (cuDNN)": partial(by_torch, other, image, weights, *conv2d)}
        case = f"{n} x {h} x {w}, {c} to {filters} channels, {side} x {side}, {short_name(dtype)}"
        moved_bytes = image.nbytes + weights.nbytes + output.nbytes
        yield case, run, rivals, 2 * output.numel() * c * side**2, moved_bytes
        # Every element is compared with fp32. The rounding to bf16 causes a relative error of at most 2**-9.
        expected = torch.nn.functional.conv2d(image.float(), weights.float(), *conv2d)
        torch.testing.assert_close(output.float(), expected, rtol=2**-8, atol=2**-10)
        torch.testing.assert_close(other["output"].float(), expected, rtol=2**-6, atol=2**-8)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
