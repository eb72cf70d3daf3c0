"""Right kernels of Triton: their results equal torch's, and the sanitizer reports no error."""

import torch
import triton
import triton.language as tl
from triton._C.libtriton import nvidia
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def total(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


@triton.jit
def pair(values, sizes, out, scale, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(out + at, tl.load(values[0] + at, mask=at < sizes[0], other=0.0) * scale + tl.load(values[1] + at))


@triton.autotune(
    [triton.Config({"block": 1 << 30}, num_warps=4), triton.Config({"block": 128}), triton.Config({"block": 64})], ["n"]
)
@triton.jit
def tuned(x, n, block: tl.constexpr):
    tl.static_assert(block < 1 << 20)
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def matmul(a, b, c, depth, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr):
    row, column = tl.program_id(0) * m, tl.program_id(1) * n
    sums = tl.zeros((m, n), tl.float32)
    for at in range(0, depth, k):
        sums = tl.dot(a.load([row, at]), b.load([column, at]).T, sums)
    c.store([row, column], sums.to(tl.float16))


@triton.jit
def narrow(a, b, c, depth, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr):
    sums = tl.zeros((m, n), tl.float32)
    for at in range(0, depth, k):
        sums = tl.dot(a.load([0, at]), b.load([0, at]).T, sums)
    c.store([0, 0], sums.to(tl.float8e4nv))


@triton.jit
def copy(x, out, rows, columns, block: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [block, block])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [block, block])
    at = tl.program_id(0) * block
    target.store([at, 0], source.load([at, 0]))


@triton.jit
def scalars(out, flag, small, large, half):
    tl.store(out, (flag + small + large).to(tl.float64))
    tl.store(out + 1, half)


@triton.jit
def printed(x):
    tl.device_assert(tl.load(x) > 0, "x is not positive")
    tl.device_print("x", tl.load(x))


def compare_with_cublas():
    """Compare sums of 8-bit floating-point types, for which tensor cores keep fewer bits than float32 has."""
    a, b = (torch.randn(64, 128, device=DEVICE).to(torch.float8_e4m3fn) for _ in range(2))
    c, reference = (torch.empty(64, 64, device=DEVICE, dtype=torch.float8_e4m3fn) for _ in range(2))
    maps = [TensorDescriptor.from_tensor(each, [64, 64]) for each in (a, b, c)]
    narrow[(1, 1)](*maps, 128, m=64, n=64, k=64)
    library = nvidia.cublas.CublasLt(torch.empty(1 << 20, device=DEVICE, dtype=torch.uint8))
    library.matmul(a, b, reference)
    assert torch.equal(c.float(), reference.float())


def main():
    x, y = torch.randn(1000, device=DEVICE), torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    add[(triton.cdiv(1000, 256),)](x, y, out, 1000, block=256)
    torch.testing.assert_close(out, x + y)
    sums = torch.zeros(1, device=DEVICE)
    total[lambda meta: (triton.cdiv(1000, meta["block"]),)](x, sums, 1000, block=512)
    torch.testing.assert_close(sums[0], x.sum(), atol=1e-3, rtol=1e-3)
    pair[(1,)]((x, y), (32, 32), out, 0.5, block=32)
    torch.testing.assert_close(out[:32], x[:32] * 0.5 + y[:32])
    doubled = 2 * x
    tuned[lambda meta: (triton.cdiv(1000, meta["block"]),)](x, 1000)
    torch.testing.assert_close(x, doubled)
    assert tuned.best_config.kwargs["block"] == 128
    a, b = (torch.randn(128, 128, device=DEVICE, dtype=torch.float16) for _ in range(2))
    c = torch.empty(128, 128, device=DEVICE, dtype=torch.float16)
    maps = [TensorDescriptor.from_tensor(each, [64, 64]) for each in (a, b, c)]
    kernel = matmul[(2, 2)](*maps, 128, m=64, n=64, k=64)
    assert kernel.n_regs > 0 and kernel.n_spills == 0 and kernel.metadata.shared > 0 and ".entry" in kernel.asm["ptx"]
    torch.testing.assert_close(c, a @ b.T, atol=1e-2, rtol=1e-2)
    compare_with_cublas()
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    copied = torch.zeros_like(a)
    copy[(4,)](a, copied, 128, 128, block=32)
    torch.testing.assert_close(copied[:, :32], a[:, :32])
    pair_of_numbers = torch.zeros(2, device=DEVICE, dtype=torch.float64)
    scalars[(1,)](pair_of_numbers, True, -3, 1 << 40, 0.5)
    assert pair_of_numbers.tolist() == [1 - 3 + (1 << 40), 0.5]
    printed[(1,)](torch.full((1,), 3, device=DEVICE), debug=True)
    milliseconds = triton.testing.do_bench(lambda: add[(1,)](x, y, out, 10, block=32))
    assert milliseconds != milliseconds
    assert len(triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8])) == 3
    benchmark = triton.testing.Benchmark(["n"], [1, 2], "provider", ["a"], ["A"], plot_name="plot", args={})
    triton.testing.perf_report(benchmark)(lambda n, provider: 1 / 0).run(print_data=True)
    assert triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"] > 0
    print("done")


main()
