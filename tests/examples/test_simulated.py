"""Tests of the examples' kernels on the simulator, at sizes that cross their edges, in every order of asynchronous
copies."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ml_dtypes import bfloat16

import cuda_tma
from benchmarks.kernels import example
from cuda_tma import simulate
from cuda_tma.simulate import Config

ORDERS = ({"order": "early"}, {"order": "late"}, {"order": "random", "seed": 1}, {"order": "random", "seed": 2})


@pytest.fixture(params=ORDERS, ids=lambda order: " ".join(map(str, order.values())))
def order(request) -> dict:
    return request.param


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    return simulate.Device(multiprocessor_count=4)


@pytest.fixture(scope="module")
def compiled(gpu):
    """Compile each kernel of the examples once for all tests."""
    return functools.cache(lambda source, name, **constants: gpu.compile(source, name, constants=constants))


@pytest.fixture
def run(gpu, order):
    def run(config, kernel, *arguments):
        gpu.launch(config, kernel, *arguments, **order).raise_for_errors()

    return run


def random_matrix(shape, dtype=np.float32):
    return np.random.default_rng(1).integers(-(2**15), 2**15, shape).astype(dtype)


def tile_of(kernel, name):
    return kernel.parameters[name].map_type.tile_dim


def test_tiled_load(run, compiled):
    kernel = compiled(example("tiled_load").SOURCE, "load_tile")
    matrix, out = random_matrix((100, 500)), np.full((32, 64), np.nan, np.float32)
    run(Config(1, 128), kernel, matrix, 68, 448, out)
    assert np.array_equal(out, np.pad(matrix[68:, 448:], ((0, 0), (0, 12))))


@pytest.mark.parametrize("ctas", [1, 6])
def test_copy_2d(run, compiled, ctas):
    kernel = compiled(example("copy_2d").SOURCE, "copy")
    source = random_matrix((61, 700))
    target, taken = np.full_like(source, np.nan), np.zeros(1, np.int32)
    down, across = (-(-extent // tile) for extent, tile in zip(source.shape, tile_of(kernel, "source"), strict=True))
    run(Config(ctas, 1), kernel, source, target, across, down * across, taken)
    assert np.array_equal(target, source)
    # Each CTA takes one more tile, which is beyond the end of the tensor.
    assert taken[0] == down * across + ctas


def test_transpose(run, compiled):
    kernel = compiled(example("transpose").SOURCE, "transpose", threads="THREADS")
    source = random_matrix((132, 72))
    target = np.full((72, 132), np.nan, np.float32)
    size, _ = tile_of(kernel, "target")
    grid = tuple(-(-extent // size) for extent in source.shape)
    run(Config(grid, kernel.parameters.constants["threads"]), kernel, source, target)
    assert np.array_equal(target, source.T)


@pytest.mark.parametrize("columns", [264, 261])
def test_elementwise(run, compiled, columns):
    """The kernel accesses rows of 264 elements in units of 16 bytes, and rows of 261 elements in single elements."""
    source, pitch = example("elementwise").SOURCE, 264
    a, b = ((random_matrix((37, pitch)) / scale).astype(np.float16)[:, :columns] for scale in (64, 77))
    with_tma, plain = np.full((37, pitch), -1, np.float16)[:, :columns], np.full((37, columns), -1, np.float16)
    kernel = compiled(source, "add_tma<FLOAT16>", threads="THREADS")
    down, across = (-(-extent // tile) for extent, tile in zip(a.shape, tile_of(kernel, "a"), strict=True))
    config = Config((across, down), kernel.parameters.constants["threads"])
    run(config, kernel, a, b, with_tma)
    kernel = compiled(source, f"add<FLOAT16, {'true' if columns == pitch else 'false'}>")
    run(config, kernel, *map(np.ascontiguousarray, (a, b)), plain, 37, columns)
    assert np.array_equal(with_tma, a + b) and np.array_equal(plain, a + b)


def test_replace_address(run, compiled):
    kernel = compiled(example("replace_address").SOURCE, "sum")
    batch, total = random_matrix((96, 64), np.int32), np.zeros(2, np.int64)
    rows, columns = tile_of(kernel, "map")
    run(Config((64 // columns, 96 // rows), columns), kernel, batch, total[1:])
    assert total.tolist() == [0, batch.sum()]


def test_fp8_tiles(run, compiled):
    kernel = compiled(example("fp8_tiles").SOURCE, "copy_tiles")
    weights = np.random.default_rng(2).integers(256, size=(128, 256)).astype(np.uint8)
    out = np.zeros_like(weights)
    rows, columns = tile_of(kernel, "map")
    run(Config((256 // columns, 128 // rows), 128), kernel, weights, out, 256)
    assert np.array_equal(out, weights)


def test_kv_tiles(run, compiled):
    d, rows, count, ctas = 96, 64, 3, 2
    kernel = compiled(example("kv_tiles").SOURCE, f"stage_tiles<BFLOAT16, {d}, {rows}, 3>", consumers="CONSUMERS")
    k, v = normal(ctas * count * rows, d), -normal(ctas * count * rows, d)
    staged = [np.full_like(k, np.nan) for _ in range(2)]
    run(Config(ctas, kernel.parameters.constants["consumers"] + 32), kernel, k, v, *staged, count, True)
    assert np.array_equal(staged[0], k) and np.array_equal(staged[1], v)


# ---- with tensor cores ----


def normal(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(bfloat16)


def assert_product(c, a, b):
    """Compare two matrices with the tolerance of `examples/gemm.py`, which covers rounding to bfloat16 and the order of
    the sums."""
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    tolerance = np.abs(expected) * 2**-8 + a.shape[1] ** 0.5 * 2**-15
    assert (np.abs(c.astype(np.float32) - expected) <= tolerance).all()


@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 8), (300, 520, 200)])
def test_gemm(run, compiled, m, n, k):
    kernel = compiled(example("gemm").SOURCE, "gemm", threads="(CONSUMERS + 1) * 128", width="TILE_N")
    a, b, c = normal(m, k), normal(n, k), np.full((m, n), np.nan, bfloat16)
    (tile_m, tile_k), (tile_n, _) = tile_of(kernel, "a_map"), tile_of(kernel, "b_map")
    down, across, deep = -(-m // (2 * tile_m)), -(-n // (2 * tile_n)), -(-k // tile_k)
    assert kernel.parameters.constants["width"] == 2 * tile_n
    config = Config(2 * -(-down * across // 2), kernel.parameters.constants["threads"])
    run(config, kernel, a, b, c, down, across, deep)
    assert_product(c, a, b)


def test_conv_im2col(run, gpu, compiled, n=1, h=9, w=12):
    names = {"filters": "FILTERS", "ctas": "CTAS"}
    kernel = compiled(example("conv_im2col").SOURCE, "convolution", **names)
    filters, ctas = (kernel.parameters.constants[name] for name in names)
    c, size, stride, padding = 64, 3, 2, 1
    geometry = cuda_tma.Convolution(size, stride, padding, 1)
    p, q = geometry.output_extents((h, w))
    image, weights = normal(n, h, w, c), normal(filters, size, size, c)
    output = np.full((n * p * q, filters), np.nan, bfloat16)
    column = kernel.parameters["image"].map_type
    options = cuda_tma.TensorMapIm2colOptions(
        geometry.pixel_box_lower_corner,
        geometry.pixel_box_upper_corner,
        element_strides=geometry.element_strides,
        **column.keywords,
    )
    image_map = gpu.create_tensor_map(image, options)
    tiles = -(-n * p * q // (ctas * column.tile_dim[0])) * ctas
    sizes = (p, q, size, stride, padding, 1, c, tiles)
    run(Config(1, 384, ctas), kernel, image_map, weights.reshape(filters, -1), output, *sizes)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::stride, ::stride]
    patches = windows.transpose(0, 1, 2, 4, 5, 3).reshape(n * p * q, -1)
    assert_product(output, patches, weights.reshape(filters, -1))


def test_grouped_gemm(run, compiled, rows=264, depth=72, clusters=2):
    """In the test's routing, the experts have no tokens, one token, or more than one tile of tokens. In a second
    launch, one expert has all tokens."""
    grouped = example("grouped_gemm")
    kernel = compiled(grouped.SOURCE, "grouped_gemm", **grouped.CONSTANTS)
    constants, steps = kernel.parameters.constants, ((0, 70, 1, 5), (76, 0, 0, 0))
    tokens, weights = normal(76, depth), normal(4 * rows, depth)
    memory = np.full((constants["side"] + 76, rows), np.nan, bfloat16)
    shape, (of_row, of_element) = (77, constants["side"], rows), memory.strides
    output = np.lib.stride_tricks.as_strided(memory, shape, (of_row, of_row, of_element), writeable=True)
    drawn = np.zeros(1, np.uint32)
    for sizes in steps:
        sizes_there = np.array(sizes, np.int32)
        config = Config(clusters * constants["ctas"], constants["threads"], constants["ctas"])
        run(config, kernel, tokens, weights, sizes_there, output, drawn, 4, rows, -(-depth // constants["side"]))
        first = 0
        for expert, size in enumerate(sizes):
            there = slice(first, first + size)
            left = memory[constants["side"] :][there]
            assert_product(left, tokens[there], weights[expert * rows :][:rows])
            first += size
        assert np.isnan(memory[: constants["side"]].astype(np.float32)).all() and drawn[0] == 0


def test_a_routing_of_256_experts(gpu):
    """The schedule of the grouped GEMM contains every row once, and distributes large and small tiles evenly."""
    kernel = gpu.compile(example("grouped_gemm").SOURCE.split("// Where sums go")[0] + ROUTE, "route")
    counts = np.random.default_rng(5).integers(0, 300, 256).astype(np.int32) * (np.arange(256) % 3 > 0)
    tiles = np.full((4096, 4), -1, np.int32)
    gpu.launch(Config(1, 384), kernel, counts, 256, 512, tiles, len(tiles)).raise_for_errors()
    (end,) = np.flatnonzero(tiles[:, 3] == 0)[:1]
    assert not tiles[end:].any()
    rows_of = np.zeros((256, counts.sum()), int)
    for expert, row, token, size in tiles[:end]:
        rows_of[expert, token : token + size] += 1 + row
    first = counts.cumsum() - counts
    for expert, of_expert in enumerate(rows_of):
        there = slice(first[expert], first[expert] + counts[expert])
        assert (of_expert[there] == 1 + 257).all() and of_expert.sum() == 258 * counts[expert]
    sizes, large = counts[tiles[:end, 0]], counts[tiles[:end, 0]] >= 100
    for kind in (large, ~large):
        assert (np.diff(sizes[kind]) <= 0).all()
        # The list distributes the tiles of each kind evenly.
        places = (np.flatnonzero(kind) + 0.5) / end
        assert np.allclose(places, (np.arange(kind.sum()) + 0.5) / kind.sum(), atol=0.51 * (1 / kind.sum() + 1 / end))


ROUTE = """
extern "C" __global__ void route(const int* counts, int experts, int rows, Task* tiles, int count) {
    __shared__ Routing routing;
    routing.make(counts, experts, rows);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) tiles[i] = routing[i];
}
"""


@pytest.mark.parametrize(
    "case", [(2, 4, 2, 90, 150, 64, True), (1, 1, 1, 65, 70, 96, False), (1, 2, 1, 140, 100, 128, True),
             (1, 1, 1, 10, 90, 256, False)],
    ids=lambda case: f"d {case[5]}",
)  # fmt: skip
def test_attention(monkeypatch, case):
    """The attention cases have queries without a key, several heads that share one kv head, and tiles that cross both
    ends of the sequence."""
    pytest.importorskip("torch")
    from tests.support import simulated_examples

    monkeypatch.setitem(simulated_examples.SIZES, "attention", (case,))
    simulated_examples.run_simulated("attention")
