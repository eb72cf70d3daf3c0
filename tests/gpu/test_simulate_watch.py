"""Tests that each launch of the examples' kernels leaves the same bytes on the GPU and on the simulator."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

import cuda_tma
from benchmarks.kernels import example
from cuda_tma import simulate
from cuda_tma._compile.compiled import compiled_of
from cuda_tma.simulate import _watch

torch = pytest.importorskip("torch")

# LAUNCHES is the least number of compared launches.
LAUNCHES = 400
_compared: list[int] = []


def sizes(name: str) -> Iterator[tuple]:
    """Yield the arguments of an example's cases, which have small and different sizes."""
    draw = random.Random(name)
    if name == "kv_tiles":
        some = itertools.product((64, 96, 128), (2, 3, 4), (64, 128), ("float16", "bfloat16"))
        yield from ((*each, 2, 3) for each in some)
        return
    if name == "elementwise":
        types = ("FLOAT32", "FLOAT16", "INT32")
        yield from (((draw.randint(1, 60), draw.randint(1, 600)), draw.choice(types)) for _ in range(60))
        return
    for _ in range({"copy_2d": 100, "transpose": 100, "gemm": 80, "conv_im2col": 30, "grouped_gemm": 30}[name]):
        if name in ("copy_2d", "transpose"):
            yield 4 * draw.randint(1, 40), 4 * draw.randint(1, 150)
        elif name == "gemm":
            yield draw.randint(1, 400), 8 * draw.randint(1, 60), 8 * draw.randint(1, 30)
        elif name == "conv_im2col":
            kernel = draw.choice((1, 3))
            window = kernel, draw.randint(1, 2), draw.randint(0, kernel // 2), draw.randint(1, 2)
            yield draw.randint(1, 2), 64, draw.randint(5, 12), draw.randint(5, 12), window
        else:
            tokens = tuple(draw.randint(1, 90) for _ in range(draw.randint(1, 4)))
            yield "some", (tokens,), 8 * draw.randint(1, 40), 8 * draw.randint(1, 20)


def assert_same(launches: list[simulate.Watched]) -> None:
    _compared.append(len(launches))
    for number, launch in enumerate(launches):
        assert not launch.skipped, f"launch {number} of {launch.kernel}: {launch.skipped}"
        assert not launch.report.findings, f"launch {number} of {launch.kernel}: {launch.report}"
        assert not launch.differences, f"launch {number} of {launch.kernel}: {launch.differences[0]}"


@pytest.mark.parametrize("name", ["tiled_load", "replace_address", "fp8_tiles"])
def test_scripts(device, name):
    with simulate.watch() as launches:
        example(name).main()
    assert launches
    assert_same(launches)


@pytest.mark.parametrize(
    "name", ["copy_2d", "transpose", "elementwise", "kv_tiles", "gemm", "conv_im2col", "grouped_gemm"]
)
def test_cases(device, name):
    """On the simulator, the asynchronous copies take effect as late as PTX allows."""
    with simulate.watch(order="late", sanitize=False) as launches:
        for _, ours, rivals, *_ in example(name).cases([*sizes(name)]):
            # The example checks the results after all launches of a case.
            for run in (ours, *rivals.values()):
                run()
    assert_same(launches)


def test_enough_launches_were_compared(publish):
    publish(f"{sum(_compared)} launches of the examples left the same bytes on the GPU and on the simulator")
    assert sum(_compared) >= LAUNCHES


def test_another_kernel_on_the_simulator_is_seen(device, monkeypatch):
    source = 'extern "C" __global__ void fill(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = VALUE; }'
    kernel, other = (cuda_tma.compile(source, "fill", defines={"VALUE": value}) for value in (1, 2))
    monkeypatch.setattr(_watch, "compiled_of", lambda of: compiled_of(other))
    out = torch.zeros(8, dtype=torch.int32, device="cuda")
    with simulate.watch() as launches:
        cuda_tma.launch(device.default_stream, {"grid": 1, "block": 32}, kernel, out, 8)
    ((difference,),) = [launch.differences for launch in launches]
    assert (difference.count, difference.address) == (8, out.data_ptr())
    assert out.tolist() == [1] * 8


@pytest.mark.parametrize("strict", [False, True])
def test_wrong_kernels_are_also_found(device, strict):
    """The wrong kernel of the test gives right bytes only by chance, on the GPU and on the simulator."""
    source = """#include <cuda_tma/tma.cuh>
        extern "C" __global__ void kernel(const __grid_constant__ cuda_tma::TensorMap map, int* in) {
            __shared__ __align__(128) int tile[32];
            tile[threadIdx.x] = in[threadIdx.x];
            __syncwarp();
            if (threadIdx.x == 0) {
                cuda_tma::store(map, cuda_tma::Coordinates{0}, tile);
                cuda_tma::commit_group();
                cuda_tma::wait_group<0>();
            }
        }"""
    kernel = cuda_tma.compile(source, "kernel")
    given = torch.arange(32, dtype=torch.int32, device="cuda")
    out = torch.zeros_like(given)
    tensor_map = cuda_tma.create_tensor_map(out, box_dim=(32,))
    with simulate.watch(strict=strict) as launches:
        cuda_tma.launch(device.default_stream, {"grid": 1, "block": 32}, kernel, tensor_map, given)
    (launch,) = launches
    (finding,) = launch.report.errors
    assert (finding.kind, finding.source[-1].line, finding.other[-1].line) == ("missing-proxy-fence", 7, 4)
    assert out.tolist() == given.tolist() and not launch.differences
