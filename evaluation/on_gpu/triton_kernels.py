"""Launch Triton kernels in several sizes, for ``run_trial.py``, and compare each result with torch's."""

import sys

import torch
import triton
import triton.language as tl

SIZES = (1, 31, 100, 256, 1000, 1024, 2049, 3000, 4096, 5001, 7777, 8192)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, value * tl.sigmoid(1.702 * value), mask=at < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + at, power / tl.sum(power, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, out, weight, bias, columns, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / columns
    centered = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, axis=0) / columns + eps)
    result = centered * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0)
        right = tl.load(b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < M) & (columns < N)
    tl.store(c + rows[:, None] * N + columns, total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def descriptor_copy(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([row, column], source.load([row, column]) * 2)


@triton.jit
def attention(q, k, v, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inner)
    most = tl.full((BM,), -float("inf"), tl.float32)
    sums, total = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        key = tl.load(k + columns[None, :] * D + inner[:, None])
        scores = tl.dot(query, key) * scale
        now = tl.maximum(most, tl.max(scores, 1))
        power = tl.exp(scores - now[:, None])
        factor = tl.exp(most - now)
        sums = sums * factor + tl.sum(power, 1)
        value = tl.load(v + columns[:, None] * D + inner)
        total = tl.dot(power.to(value.dtype), value, total * factor[:, None])
        most = now
    tl.store(out + rows[:, None] * D + inner, (total / sums[:, None]).to(out.dtype.element_ty))


@triton.jit
def cumulated(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=0)
    tl.store(out + row * columns + at, tl.cumsum(value, axis=0), mask=at < columns)


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(counts + tl.load(x + at, mask=mask, other=0), 1, mask=mask)


@triton.jit
def summed(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def dropout(x, out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > 0.5
    tl.store(out + at, tl.where(kept, tl.load(x + at, mask=at < n) * 2, 0.0), mask=at < n)


@triton.jit
def converted(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n).to(out.dtype.element_ty), mask=at < n)


def compare(found, expected, **bounds):
    torch.testing.assert_close(found, expected, **bounds)


def run_elements(n):
    x, y, out = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"), torch.empty(n, device="cuda")
    grid = (triton.cdiv(n, 512),)
    add[grid](x, y, out, n, BLOCK=512)
    compare(out, x + y)
    gelu[grid](x, out, n, BLOCK=512)
    compare(out, x * torch.sigmoid(1.702 * x))
    half = x.half()
    add[grid](half, half, half, n, BLOCK=512)
    integers = torch.randint(0, 64, (n,), device="cuda", dtype=torch.int32)
    counts = torch.zeros(64, device="cuda", dtype=torch.int32)
    histogram[grid](integers, counts, n, BLOCK=512)
    compare(counts.cpu().long(), torch.bincount(integers.cpu(), minlength=64))
    total = torch.zeros(1, device="cuda")
    summed[grid](x, total, n, BLOCK=512)
    compare(total[0], x.sum(), rtol=1e-4, atol=1e-3)
    dropout[grid](x, out, n, 7, BLOCK=512)
    bfloat = torch.empty(n, device="cuda", dtype=torch.bfloat16)
    converted[grid](x, bfloat, n, BLOCK=512)
    compare(bfloat, x.bfloat16())


def run_rows(n):
    rows, columns = 4, min(n, 2048)
    block = triton.next_power_of_2(columns)
    x = torch.randn(rows, columns, device="cuda")
    out, ones = torch.empty_like(x), torch.ones(columns, device="cuda")
    softmax[(rows,)](x, out, columns, BLOCK=block)
    compare(out, torch.softmax(x, 1))
    layer_norm[(rows,)](x, out, ones, ones, columns, 1e-5, BLOCK=block)
    compare(out, torch.nn.functional.layer_norm(x, (columns,), ones, ones), rtol=1e-4, atol=1e-4)
    integers = torch.randint(0, 9, (rows, columns), device="cuda", dtype=torch.int32)
    found = torch.empty_like(integers)
    cumulated[(rows,)](integers, found, columns, BLOCK=block)
    compare(found.cpu(), integers.cpu().cumsum(1).int())


def run_products(m, n, k, dtype):
    a, b = torch.randn(m, k, device="cuda").to(dtype), torch.randn(k, n, device="cuda").to(dtype)
    c = torch.empty(m, n, device="cuda", dtype=torch.float32)
    matmul[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, BM=64, BN=64, BK=32)
    compare(c, a.float() @ b.float(), rtol=2e-2, atol=2e-1)


def run_attention(n, d, dtype):
    q, k, v = (torch.randn(n, d, device="cuda").to(dtype) for _ in range(3))
    out = torch.empty_like(q)
    attention[(n // 64,)](q, k, v, out, d**-0.5, n, D=d, BM=64, BN=32)
    expected = torch.softmax(q.float() @ k.float().T * d**-0.5, 1) @ v.float()
    compare(out.float(), expected, rtol=5e-2, atol=5e-2)


def run_descriptors(m, n):
    x = torch.randn(m, n, device="cuda")
    out = torch.zeros_like(x)
    descriptor_copy[(triton.cdiv(m, 32), triton.cdiv(n, 32))](x, out, m, n, BM=32, BN=32)
    compare(out, x * 2)


def attempt(run, *arguments):
    """Run a group of launches. An error of Triton itself does not end the trial."""
    try:
        run(*arguments)
    except Exception as error:
        print(f"failed: {run.__name__}{arguments}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)


def main():
    torch.manual_seed(0)
    if hasattr(triton, "set_allocator"):
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    for n in SIZES:
        attempt(run_elements, n)
        attempt(run_rows, n)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for m, n, k in ((64, 64, 32), (64, 128, 64), (100, 70, 50), (128, 64, 128), (33, 65, 17)):
            attempt(run_products, m, n, k, dtype)
    for dtype in (torch.float16, torch.bfloat16):
        for n in (64, 128, 256):
            attempt(run_attention, n, 64, dtype)
    for m, n in ((32, 32), (64, 32), (40, 64), (100, 100), (128, 96)):
        attempt(run_descriptors, m, n)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
