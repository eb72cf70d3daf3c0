"""Tests of the block-scaled fp4 product for compute capability 12, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16, float4_e2m1fn, float8_e4m3fn

from benchmarks.kernels import example
from cuda_tma import layouts, simulate
from cuda_tma._command import cli

M, N, K = 70, 72, 288  # The tile crosses the edges of all three dimensions.
SOURCE = example("fp4_gemm").SOURCE
SCALES = layouts.layout("scales:ue4m3:128x4")


@pytest.fixture(scope="module", params=[1, 4], ids=lambda count: f"{count} schedules")
def gpu(request):
    return simulate.Device("12.0", schedules=request.param)


@pytest.fixture(scope="module")
def operands():
    """Return the packed elements, the scales, and the numbers of both operands."""
    random = np.random.default_rng(1)
    packed = [random.integers(256, size=(rows, K // 2), dtype=np.uint8) for rows in (M, N)]
    scales = [random.uniform(0.1, 2, (rows, K // 16)).astype(float8_e4m3fn) for rows in (M, N)]
    return packed, scales


def numbers(packed, scales):
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
    return codes.view(float4_e2m1fn).astype(float) * np.repeat(scales.astype(float), 16, axis=1)


def tiled(scales):
    """Return scales as tiles of 128 rows and 4 scales. The named layout contains the place of each scale in a tile."""
    padded = np.zeros((128, -(-scales.shape[1] // 4) * 4), np.uint8)
    padded[: len(scales), : scales.shape[1]] = scales.view(np.uint8)
    tiles = np.zeros((1, padded.shape[1] // 4, 512), np.uint8)
    for number, tile in enumerate(tiles[0]):
        tile[SCALES.places[..., 0]] = padded[:, 4 * number :][:, :4]
    return tiles.reshape(1, -1, 2, 256)


def multiplied(gpu, source, packed, scales):
    kernel = gpu.compile(source, "fp4_gemm", constants={"threads": "CONSUMERS + 32"})
    assert kernel.parameters.dynamic_shared_bytes <= 99 << 10
    c = np.full((M, N), np.nan, bfloat16)
    config = simulate.Config(2, kernel.parameters.constants["threads"])
    report = gpu.launch(config, kernel, *packed, *map(tiled, scales), c, 0.5, 1, 1, 2)
    assert report.findings == ()
    return c.astype(float)


def difference(c, packed, scales):
    """Return the largest error of the product, in units of the error that rounding explains."""
    a, b = map(numbers, packed, scales)
    expected = 0.5 * a @ b.T
    explained = np.abs(expected) * 2**-8 + np.abs(a) @ np.abs(b).T * 2**-20
    return (np.abs(c - expected) / np.maximum(explained, 2**-20)).max()


def test_the_product_equals_numpy(gpu, operands):
    assert difference(multiplied(gpu, SOURCE, *operands), *operands) <= 1


# Each row contains a correct text of the kernel and a wrong one, the operands with the wrong scales, the layouts that
# write and read these scales, and lines that compare the layouts.
PLANTED = {
    "plain rows": (
        ("row % 32 * 16 + row / 32 * 4", "row * 4", (True, True)),
        ("scales:ue4m3:128x4", "tile:u8:128x4"),
        "scales:ue4m3:128x4 and tile:u8:128x4:NONE differ: 8 of 512 elements have the same byte\n"
        "the first is element (1, 0): written to byte 16, and read from byte 4, where element (32, 0) lies\n",
    ),
    "a lane for each row": (
        ("n + lane % 4 * 8 + lane / 4", "n + lane", (False, True)),
        ("cute:(32,4):(1,32)@32x4", "mma.scales:ue4m3:32x4"),
        "cute:(32,4):(1,32)@32x4 and mma.scales:ue4m3:32x4 differ: 8 of 128 elements have the same thread and value\n"
        "the first is element (1, 0): written to thread 1, value 0, and read from thread 4, value 0, where element (4, "
        "0) lies\n",
    ),
}


@pytest.mark.parametrize("case", PLANTED.values(), ids=PLANTED)
def test_a_wrong_layout_of_scales_is_named(operands, capsys, case):
    """The kernel with a wrong layout multiplies by the scales that the command finds at the places of the reads."""
    (right, wrong, are_wrong), names, lines = case
    if any(name.startswith("cute") for name in names):
        pytest.importorskip("tensor_layouts")
    packed, scales = operands
    c = multiplied(simulate.Device("12.0", schedules=1), SOURCE.replace(right, wrong), packed, scales)
    found = layouts.compare(*names).found
    read = [read_at(found, each) if is_wrong else each for each, is_wrong in zip(scales, are_wrong, strict=True)]
    assert difference(c, packed, scales) > 100 and difference(c, packed, read) <= 1
    assert cli.main(["layouts", *names]) == 1
    assert capsys.readouterr().out.startswith(lines)


def read_at(found, scales):
    """Return the scales that a kernel reads in place of each scale, in blocks of the compared shape."""
    rows, columns = found.shape[:2]
    padded = np.pad(scales, [(0, -extent % size) for extent, size in zip(scales.shape, (rows, columns), strict=True)])
    blocks = padded.reshape(len(padded) // rows, rows, -1, columns).swapaxes(1, 2)
    return (
        blocks[:, :, found[..., 0], found[..., 1]]
        .swapaxes(1, 2)
        .reshape(padded.shape)[: len(scales), : scales.shape[1]]
    )


def test_the_script_runs(monkeypatch, capsys):
    pytest.importorskip("torch")
    from tests.support.simulated_examples import simulated

    module = example("fp4_gemm")
    for name, value in simulated("12.0").items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "SIZES", ((M, N, K),))
    module.main()
    assert capsys.readouterr().out == f"ok: {M} x {N} x {K}, every element\n"
