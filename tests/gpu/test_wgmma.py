"""Tests of wgmma of bf16 and f16 with every swizzle and major order, on tiles of small integers that TMA loads."""

from itertools import product

import pytest
from cuda.core import LaunchConfig

import cuda_tma

from . import modules
from .conftest import compute_capability
from .product_kernels import PRELUDE

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("watched")

SOURCE = (
    PRELUDE
    + r"""
// One product of a 64 x K and an N x K matrix, where K fills a span of the swizzle.
template <int N, Input Type, Major A, Major B, Swizzle Mode>
__global__ void multiply(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, float* out) {
    constexpr int SPAN = swizzle_span<Mode>(), K = SPAN / 2;
    extern __shared__ __align__(1024) char a[];
    char* b = a + 64 * SPAN;
    loaded((64 + N) * SPAN, [&](Barrier& full) {
        const auto load_tile = [&](char* tile, const TensorMap& map, Major major, int rows) {
            if (major == Major::K) return load(tile, map, full, Coordinates{0, 0});
            for (int row = 0; row < rows; row += K) load(tile + row * SPAN, map, full, Coordinates{row, 0});
        };
        load_tile(a, a_map, A, 64);
        load_tile(b, b_map, B, N);
    });

    const auto a_tile = A == Major::K ? k_major<Mode>(a) : mn_major<Mode>(a, K);
    const auto b_tile = B == Major::K ? k_major<Mode>(b) : mn_major<Mode>(b, K);
    float sums[N / 2];
    wgmma_fence();
    for (int k = 0; k < K; k += 16)
        wgmma<Type, A, B>(sums, a_tile.advance(k * (A == Major::K ? 2 : SPAN)),
                          b_tile.advance(k * (B == Major::K ? 2 : SPAN)), k > 0);
    wgmma_commit();
    wgmma_wait<0>(sums);
    show<N>(out, sums);
}
"""
)
FORMS = list(product((64, 128, 192, 256), ("bf16", "f16"), ("K", "MN"), ("K", "MN"), ("32B", "64B", "128B")))


def name(n, element, a, b, swizzle):
    return f"multiply<{n}, Input::{element}, Major::{a}, Major::{b}, SWIZZLE_{swizzle}>"


@pytest.fixture(scope="module")
def kernels(device):
    if compute_capability()[0] != 9:
        pytest.skip("wgmma exists only on compute capability 9.0")
    return modules.compiled(SOURCE, "90a", [name(*form) for form in FORMS])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))
def test_product(device, kernels, form):
    n, element, a_major, b_major, swizzle = form
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[element]
    k = int(swizzle[:-1]) // 2
    a, b = (torch.randint(-8, 9, (rows, k), device="cuda").to(dtype) for rows in (64, n))

    def tensor_map(matrix, major):
        if major == "K":
            return device.create_tensor_map(matrix, box_dim=tuple(matrix.shape), swizzle=swizzle)
        return device.create_tensor_map(matrix.T.contiguous(), box_dim=(k, k), swizzle=swizzle)

    out = torch.full((64, n), torch.nan, device="cuda")
    config = LaunchConfig(grid=1, block=128, shmem_size=(64 + n) * 2 * k)
    maps = tensor_map(a, a_major), tensor_map(b, b_major)
    cuda_tma.launch(device.default_stream, config, kernels.get_kernel(name(*form)), *maps, out)
    torch.cuda.synchronize()
    assert torch.equal(out, a.float() @ b.float().T)
