"""Tests of torch operators on a GPU, with opcheck, compiled code and CUDA graphs."""

from __future__ import annotations

import gc
import resource
import sys
import time
from pathlib import Path
from statistics import median

import pytest

import cuda_tma
from tests.support import torch_kernels as kernels

torch = pytest.importorskip("torch")

from torch.library import opcheck  # noqa: E402

from cuda_tma.torch import like, operator  # noqa: E402

REPLAYS, CALLS, ROUNDS, CALLS_OF_ROUND = 1000, 10_000, 60, 200


def grid(x):
    return {"grid": (-(-x.shape[1] // 32), -(-x.shape[0] // 32)), "block": 32}


scale = operator(
    "cuda_tma_gpu_tests::scale",
    kernels.scale,
    outputs={"y": like("x")},
    config=grid,
    backward=lambda ctx, grad: (scale(grad.contiguous(), ctx.factor), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)
add_rows = operator(
    "cuda_tma_gpu_tests::add_rows",
    kernels.add_rows,
    outputs={"squares": like("total")},
    values={"rows": lambda x: x.shape[0], "columns": lambda x: x.shape[1]},
    mutates_args=["total"],
    config={"grid": 1, "block": 32},
)


@operator("cuda_tma_gpu_tests::mean_rows", mutates_args=["sums"])
def mean_rows(launch, x: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    partial = x.new_empty(2, columns)
    launch({"grid": 2, "block": 32}, kernels.partial_sums, x, partial, rows, columns)
    launch({"grid": 1, "block": 32}, kernels.column_sums, partial, sums, columns)
    return sums / rows


@pytest.fixture(autouse=True)
def no_compiled_functions():
    torch._dynamo.reset()


def rand(*shape, **options):
    return torch.rand(*shape, device="cuda", **options)


# ---- values ----


def test_eager():
    x, total = rand(40, 64), torch.ones(64, device="cuda")
    assert torch.equal(scale(x, 2.0), 2 * x)
    squares = add_rows(x, total, True)
    torch.testing.assert_close(total, 1 + 2 * x.sum(0))
    torch.testing.assert_close(squares, x.square().sum(0))
    torch.testing.assert_close(mean_rows(x, torch.zeros(64, device="cuda")), x.mean(0))
    assert scale(rand(0, 64), 2.0).shape == (0, 64)


def test_the_current_stream():
    """The operator launches its kernel on torch's current stream. On another stream, the kernel would read unfinished
    data."""
    stream = torch.cuda.Stream()
    x = torch.zeros(4096, 4096, device="cuda")
    scale(x, 2.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(3)
        y = scale(x, 2.0)
    stream.synchronize()
    assert torch.equal(y, torch.full_like(x, 6))


def test_the_gradient():
    x = rand(33, 64, requires_grad=True)
    (scale(x, 3.0) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, 18 * x.detach())


@pytest.mark.parametrize("name", ["scale", "gradient", "padded", "empty", "add_rows", "mean_rows"])
def test_opcheck(name):
    op, arguments = {
        "scale": (scale, (rand(40, 64), 2.0)),
        "gradient": (scale, (rand(40, 64, requires_grad=True), 2.0)),
        "padded": (scale, (rand(40, 72)[:, :64], 2.0)),
        "empty": (scale, (rand(0, 64), 2.0)),
        "add_rows": (add_rows, (rand(5, 40), rand(40), False)),
        "mean_rows": (mean_rows, (rand(5, 40), rand(40))),
    }[name]
    assert {*opcheck(op, arguments).values()} == {"SUCCESS"}


WRONG = {
    "dtype": (lambda: rand(40, 64).half(), "has dtype torch.float16"),
    "rank": (lambda: rand(2, 40, 64), "has 3 dimensions"),
    "order": (lambda: rand(64, 40).T, "stride 40 elements"),
    "stride": (lambda: rand(40, 63), "252 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tensor(name):
    make, words = WRONG[name]
    for call in (scale, torch.compile(scale, fullgraph=True, backend="eager")):
        with pytest.raises(RuntimeError, match=f"(?s)cuda_tma_gpu_tests::scale: argument 'x'.*{words}"):
            call(make(), 2.0)


def test_mixed_devices():
    with pytest.raises(RuntimeError, match="argument 'total' is on cpu, but 'x' is on cuda:0; all tensors of a call"):
        add_rows(rand(5, 40), torch.ones(40), False)
    with pytest.raises(RuntimeError, match="was called with CPU tensors"):
        scale(torch.rand(32, 32), 2.0)


def test_a_device_other_than_the_current_one():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = torch.rand(40, 64, device="cuda:1")
    y = scale(x, 2.0)
    assert y.device == x.device and torch.equal(y, 2 * x) and torch.cuda.current_device() == 0


# ---- torch.compile ----


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [None, False, True])
def test_compiled(backend, dynamic):
    """The number of recompilations of a compiled operator equals the number for torch's own operators."""
    # The import of torch._dynamo takes 2 s, so only tests that need the module import it.
    from torch._dynamo.testing import CompileCounterWithBackend

    if backend == "inductor":
        pytest.importorskip("triton")
    counters = [CompileCounterWithBackend(backend), CompileCounterWithBackend(backend)]
    settings = {"fullgraph": True, "dynamic": dynamic}
    ours = torch.compile(lambda x: scale(x.neg(), 2.0).abs(), backend=counters[0], **settings)
    theirs = torch.compile(lambda x: (x.neg() * 2.0).abs(), backend=counters[1], **settings)
    for rows in (40, 40, 48, 70, 33):
        x = rand(rows, 64)
        assert torch.equal(ours(x), theirs(x))
    assert counters[0].frame_count == counters[1].frame_count == {None: 2, False: 4, True: 1}[dynamic]


def test_reduce_overhead(publish):
    """In the mode reduce-overhead, torch captures CUDA graphs. Each call has a different input, and the result equals
    the result without a graph."""
    pytest.importorskip("triton")
    compiled = torch.compile(lambda x: scale(x + 1, 2.0) - 1, fullgraph=True, mode="reduce-overhead")
    x, wrong = rand(128, 64), torch.zeros((), device="cuda", dtype=torch.int64)
    for step in range(REPLAYS):
        x.fill_(step % 251)
        wrong += (compiled(x) != 2 * (step % 251) + 1).sum()
    assert wrong.item() == 0
    publish(f"torch operator: {REPLAYS} calls under mode='reduce-overhead' with changed inputs, every element right")


# ---- CUDA graphs ----


def captured(call):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def test_graph_replays(publish):
    x = rand(256, 256)
    graph, y = captured(lambda: scale(scale(x, 2.0), 0.5) + 1)
    wrong = torch.zeros((), device="cuda", dtype=torch.int64)
    for step in range(REPLAYS):
        x.fill_(step)
        graph.replay()
        wrong += (y != step + 1).sum()
    assert wrong.item() == 0
    publish(f"torch operator: {REPLAYS} replays of a CUDA graph with changed inputs, every element right")


def milliseconds(graph, replays):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def test_the_time_in_a_graph_is_the_kernel_s(publish):
    """The CUDA graph of the test replays a hundred launches without torch's dispatcher."""
    x, y = rand(2048, 2048), torch.empty(2048, 2048, device="cuda")
    kernel, config = kernels.scale(cuda_tma.compile), grid(x)
    into = operator("cuda_tma_gpu_tests::scale_into", kernels.scale, mutates_args=["y"], config=config)

    def bare():
        for _ in range(100):
            cuda_tma.launch(torch.cuda.current_stream(), config, kernel, x, y, 2.0)

    def ours():
        for _ in range(100):
            into(x, y, 2.0)

    graphs = [captured(each)[0] for each in (ours, bare)]
    for graph in graphs:
        milliseconds(graph, 20)
    ratios = []
    for _ in range(21):
        times = [milliseconds(graph, 5) for graph in graphs]
        ratios.append(times[0] / times[1])
    publish(f"torch operator: in a CUDA graph {median(ratios):.4f} times the bare kernel's time")
    assert abs(median(ratios) - 1) <= 0.01


# ---- memory ----


def empty_operator():
    library = torch.library.Library("cuda_tma_gpu_tests_empty", "FRAGMENT")
    library.define("scale(Tensor x, float factor) -> Tensor")
    library.impl("scale", lambda x, factor: torch.empty_like(x), "CUDA")
    return torch.ops.cuda_tma_gpu_tests_empty.scale.default, library


def growth(call):
    """Return the growth over calls with new tensors: torch's GPU memory, all GPU memory, the process, and the blocks of
    Python."""
    for _ in range(CALLS // 10):
        call(rand(33, 64), 2.0)
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated(), -torch.cuda.mem_get_info()[0], resident_bytes(), sys.getallocatedblocks()
    for _ in range(CALLS):
        call(rand(33, 64), 2.0)
    torch.cuda.synchronize()
    gc.collect()
    after = torch.cuda.memory_allocated(), -torch.cuda.mem_get_info()[0], resident_bytes(), sys.getallocatedblocks()
    return [now - then for now, then in zip(after, before, strict=True)]


def resident_bytes():
    """Return the memory of the process now. Its largest value would contain the memory of earlier tests."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory(publish):
    empty, library = empty_operator()
    theirs, ours = growth(empty), growth(scale)
    names = "torch's GPU memory", "all GPU memory", "the process (bytes)", "Python (blocks)"
    grown = "; ".join(f"{name} {one} and {other}" for name, one, other in zip(names, ours, theirs, strict=True))
    publish(f"torch operator: growth in {CALLS} calls, ours and an empty operator's: {grown}")
    assert ours[0] == theirs[0] == 0
    assert ours[1] <= max(theirs[1], 0)
    # An object of 100 bytes for each call would take a megabyte, and one block for each call.
    assert ours[2] <= max(theirs[2], 0) + 2**20
    assert ours[3] <= max(theirs[3], 0) + CALLS // 20
    library._destroy()


# ---- the cost of a call ----


def microseconds(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS_OF_ROUND):
        call()
    return (time.perf_counter() - begin) / CALLS_OF_ROUND * 1e6


def test_the_cost_of_a_call(publish):
    """The test compares the time of a call with the sum of two parts: an empty operator that allocates the output, and
    the launch on torch's current stream. The suite torch_operator of the benchmarks shows each part."""
    empty, library = empty_operator()
    x, kernel, config = rand(32, 32), kernels.scale(cuda_tma.compile), cuda_tma.LaunchConfig(grid=1, block=32)
    fixed = operator("cuda_tma_gpu_tests::fixed", kernels.scale, outputs={"y": like("x")}, config=config)

    def parts():
        y = empty(x, 2.0)
        cuda_tma.launch(torch.cuda.current_stream(), config, kernel, x, y, 2.0)

    def ours():
        fixed(x, 2.0)

    for each in (ours, parts):
        microseconds(each)
    rounds = [(microseconds(ours), microseconds(parts)) for _ in range(ROUNDS)]
    ratio = median(one / other for one, other in rounds)
    one, other = (median(times) for times in zip(*rounds, strict=True))
    publish(f"torch operator: a call takes {one:.2f} us, its parts {other:.2f} us; {ratio:.3f} times, paired")
    assert ratio <= 1.1
    library._destroy()
