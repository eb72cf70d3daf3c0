"""Kernels of Triton for sm_100.

The kernels are matrix products of five types, including persistent, specialized and grouped products, and attention.

``python triton_kernels.py CASE`` launches a kernel and compares its result with NumPy's. Without a name, the script
lists the cases.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = "cuda"


@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr, WS: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), SUM)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=WS):
        acc = tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T, acc, out_dtype=SUM)
    c.store([row, column], acc.to(c.dtype))


@triton.jit
def product_k_major_b(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, column]), acc)
    c.store([row, column], acc.to(c.dtype))


@triton.jit
def persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr, FLAT: tl.constexpr
):
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLAT, warp_specialize=WS):
        row, column = (tile // across) * BM, (tile % across) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T, acc)
        c.store([row, column], acc.to(c.dtype))


@triton.jit
def pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        at = ks + k * BK * SPLIT
        left = tl.load(a + rows[:, None] * K + at[None, :], mask=(rows[:, None] < M) & (at[None, :] < K), other=0.0)
        right = tl.load(
            b + at[:, None] * N + columns[None, :], mask=(at[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        acc = tl.dot(left, right, acc)
    where = c + rows[:, None] * N + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    if SPLIT > 1:
        tl.atomic_add(where, acc, mask=inside)
    else:
        tl.store(where, acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def device_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(da.load([row, k * BK]), db.load([column, k * BK]).T, acc)
    dc.store([row, column], acc.to(tl.float16))


@triton.jit
def grouped(a, b, c, sizes, G, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    done = 0
    first = 0
    tile = tl.program_id(0)
    for g in range(G):
        M = tl.load(sizes + g)
        across = tl.cdiv(N, BN)
        count = tl.cdiv(M, BM) * across
        da = tl.make_tensor_descriptor(a + first * K, [M, K], [K, 1], [BM, BK])
        db = tl.make_tensor_descriptor(b + g * N * K, [N, K], [K, 1], [BN, BK])
        dc = tl.make_tensor_descriptor(c + first * N, [M, N], [N, 1], [BM, BN])
        while tile >= done and tile < done + count:
            row, column = ((tile - done) // across) * BM, ((tile - done) % across) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, tl.cdiv(K, BK)):
                acc = tl.dot(da.load([row, k * BK]), db.load([column, k * BK]).T, acc)
            dc.store([row, column], acc.to(tl.float16))
            tile += tl.num_programs(0)
        done += count
        first += M


@triton.jit
def fused(a, b, bias, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T, acc)
    acc += tl.load(bias + column + tl.arange(0, BN))[None, :]
    acc = tl.maximum(acc, 0.0)
    c.store([row, column], acc.to(c.dtype))


@triton.jit
def attention(
    q, k, v, o, L, SCALE, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr
):
    start, head = tl.program_id(0) * BM, tl.program_id(1) * L
    rows = start + tl.arange(0, BM)
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    query = q.load([head + start, 0])
    end = start + BM if CAUSAL else L
    for n in tl.range(0, end, BN, warp_specialize=WS):
        scores = tl.dot(query, k.load([head + n, 0]).T) * SCALE
        if CAUSAL:
            scores = tl.where(rows[:, None] >= n + tl.arange(0, BN)[None, :], scores, -1.0e6)
        new = tl.maximum(most, tl.max(scores, 1))
        p = tl.math.exp2(scores - new[:, None])
        factor = tl.math.exp2(most - new)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(q.dtype), v.load([head + n, 0]), acc * factor[:, None])
        most = new
    o.store([head + start, 0], (acc / total[:, None]).to(o.dtype))


@triton.jit
def softmax(x, o, N, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(o + tl.program_id(0) * N + at, e / tl.sum(e, 0), mask=at < N)


@triton.jit
def layernorm(x, w, o, N, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * N + at, mask=at < N, other=0.0)
    mean = tl.sum(row, 0) / N
    centered = tl.where(at < N, row - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centered * centered, 0) / N + 1e-5)
    tl.store(o + tl.program_id(0) * N + at, centered * rstd * tl.load(w + at, mask=at < N), mask=at < N)


@triton.jit
def two_products(a, b, d, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    first = tl.dot(a.load([row, 0]), b.load([0, 0]).T)
    c.store([row, 0], tl.dot(first.to(a.dtype), d.load([0, 0])).to(c.dtype))


FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def numbers(seed: int, shape: tuple[int, ...], dtype: torch.dtype, high: int = 4) -> torch.Tensor:
    """Return small integers, which every type represents exactly."""
    found = np.random.default_rng(seed).integers(-high + 1, high, shape)
    return torch.from_numpy(found.astype(np.float32)).to(dtype).to(DEVICE)


def described(tensor: torch.Tensor, block: list[int]) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, block)


def wide(tensor: torch.Tensor) -> np.ndarray:
    return tensor.cpu().to(torch.float64).numpy()


def same(found: torch.Tensor, expected: np.ndarray, bound: float = 0.0) -> None:
    """Compare two results. Integers and sums of small integers must be equal, and floats must be equal within a
    bound."""
    if bound == 0:
        expected = torch.from_numpy(expected).to(found.dtype).to(torch.float64).numpy()
    off = np.abs(wide(found) - expected).max()
    print(f"largest difference {off:.3g}, bound {bound:.3g}")
    if not off <= bound:
        sys.exit("the result differs from NumPy's")


def run_product(left, right=None, out=torch.float16, M=128, N=128, K=128, block=(128, 128, 64), ws=False, **options):
    a, b = numbers(0, (M, K), left), numbers(1, (N, K), right or left)
    c = torch.empty((M, N), dtype=out, device=DEVICE)
    BM, BN, BK = block
    total = tl.int32 if out == torch.int32 else tl.float32
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN))
    maps = described(a, [BM, BK]), described(b, [BN, BK]), described(c, [BM, BN])
    product[grid](*maps, K, BM, BN, BK, total, ws, **options)
    same(c, wide(a) @ wide(b).T)


def run_k_major_b():
    a, b = numbers(0, (128, 128), torch.float16), numbers(1, (128, 128), torch.float16)
    c = torch.empty((128, 128), dtype=torch.float16, device=DEVICE)
    product_k_major_b[(1, 1)](
        described(a, [128, 64]), described(b, [64, 128]), described(c, [128, 128]), 128, 128, 128, 64
    )
    same(c, wide(a) @ wide(b))


def run_persistent(M=256, N=256, K=128, grid=2, ws=False, flat=False, dtype=torch.float16, **options):
    a, b = numbers(0, (M, K), dtype), numbers(1, (N, K), dtype)
    c = torch.empty((M, N), dtype=torch.float16, device=DEVICE)
    maps = described(a, [128, 64]), described(b, [128, 64]), described(c, [128, 128])
    persistent[(grid,)](*maps, M, N, K, 128, 128, 64, ws, flat, **options)
    same(c, wide(a) @ wide(b).T)


def run_clc(**options):
    run_product(torch.float16, M=256, N=256, clc=True, **options)


def run_pointers(M=120, N=136, K=104, dtype=torch.float16, split=1):
    a, b = numbers(0, (M, K), dtype), numbers(1, (K, N), dtype)
    c = torch.zeros((M, N), dtype=torch.float32, device=DEVICE)
    pointers[(triton.cdiv(M, 128), triton.cdiv(N, 64), split)](a, b, c, M, N, K, 128, 64, 32, split)
    same(c, wide(a) @ wide(b))


def with_allocator() -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=DEVICE))


def run_device_descriptors():
    with_allocator()
    a, b = numbers(0, (200, 136), torch.float16), numbers(1, (136, 136), torch.float16)
    c = torch.empty((200, 136), dtype=torch.float16, device=DEVICE)
    device_descriptors[(2, 2)](a, b, c, 200, 136, 136, 128, 128, 64)
    same(c, wide(a) @ wide(b).T)


def run_grouped():
    with_allocator()
    sizes, N, K = [128, 100, 200], 128, 64
    a, b = numbers(0, (sum(sizes), K), torch.float16), numbers(1, (len(sizes) * N, K), torch.float16)
    c = torch.empty((sum(sizes), N), dtype=torch.float16, device=DEVICE)
    grouped[(2,)](a, b, c, torch.tensor(sizes, dtype=torch.int32, device=DEVICE), len(sizes), N, K, 128, 64, 64)
    parts = np.split(wide(a), np.cumsum(sizes)[:-1])
    expected = [part @ wide(b)[g * N : (g + 1) * N].T for g, part in enumerate(parts)]
    same(c, np.concatenate(expected))


def run_fused():
    a, b = numbers(0, (128, 128), torch.bfloat16), numbers(1, (128, 128), torch.bfloat16)
    bias = numbers(2, (128,), torch.float32)
    c = torch.empty((128, 128), dtype=torch.bfloat16, device=DEVICE)
    fused[(1, 2)](described(a, [128, 64]), described(b, [64, 64]), bias, described(c, [128, 64]), 128, 128, 64, 64)
    same(c, np.maximum(wide(a) @ wide(b).T + wide(bias), 0))


def run_attention(length=256, D=64, causal=False, ws=False, dtype=torch.float16, **options):
    q, k, v = (
        (torch.randn(2 * length, D, generator=torch.Generator().manual_seed(s))).to(dtype).to(DEVICE) for s in range(3)
    )
    o = torch.empty_like(q)
    maps = described(q, [128, D]), described(k, [64, D]), described(v, [64, D]), described(o, [128, D])
    attention[(length // 128, 2)](*maps, length, 1.44269504 / D**0.5, 128, 64, D, causal, ws, **options)
    parts = []
    for head in range(2):
        hq, hk, hv = (wide(each)[head * length : (head + 1) * length] for each in (q, k, v))
        scores = hq @ hk.T / D**0.5
        if causal:
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        parts.append(weights @ hv / weights.sum(1, keepdims=True))
    same(o, np.concatenate(parts), 2e-3 if dtype == torch.float16 else 2e-2)


def run_softmax():
    x = torch.randn(4, 300, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    o = torch.empty_like(x)
    softmax[(4,)](x, o, 300, 512)
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    same(o, e / e.sum(1, keepdims=True), 1e-6)


def run_layernorm():
    x = torch.randn(4, 300, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    w, o = numbers(1, (300,), torch.float32), torch.empty_like(x)
    layernorm[(4,)](x, w, o, 300, 512)
    centered = wide(x) - wide(x).mean(1, keepdims=True)
    same(o, centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * wide(w), 1e-4)


def run_two_products():
    a, b = numbers(0, (128, 64), torch.float16, 2), numbers(1, (64, 64), torch.float16, 2)
    d, c = numbers(2, (64, 64), torch.float16, 2), torch.empty((128, 64), dtype=torch.float32, device=DEVICE)
    maps = described(a, [128, 64]), described(b, [64, 64]), described(d, [64, 64]), described(c, [128, 64])
    two_products[(1,)](*maps, 128, 64, 64)
    same(c, wide(a) @ wide(b).T @ wide(d))


CASES = {
    "f16": lambda: run_product(torch.float16),
    "f16-512": lambda: run_product(torch.float16, M=512, N=512, K=512),
    "f16-edges": lambda: run_product(torch.float16, M=200, N=136, K=200),
    "f16-8-warps": lambda: run_product(torch.float16, num_warps=8),
    "f16-m64": lambda: run_product(torch.float16, M=64, N=64, block=(64, 64, 64)),
    "f16-n256": lambda: run_product(torch.float16, N=256, block=(128, 256, 64)),
    "f16-n32": lambda: run_product(torch.float16, N=32, block=(128, 32, 64)),
    "f16-k-major-b": run_k_major_b,
    "f16-specialized": lambda: run_product(torch.float16, K=256, ws=True),
    "f16-2-ctas": lambda: run_product(torch.float16, M=256, N=128, block=(256, 128, 64), num_ctas=2),
    "f16-clc": run_clc,
    "bf16": lambda: run_product(torch.bfloat16, out=torch.float32),
    "tf32": lambda: run_product(torch.float32, out=torch.float32, block=(128, 128, 32)),
    "e4m3": lambda: run_product(FLOAT8["e4m3"], out=torch.float32, K=256, block=(128, 128, 128)),
    "e5m2-e4m3": lambda: run_product(FLOAT8["e5m2"], FLOAT8["e4m3"], K=256, block=(128, 128, 128)),
    "s8": lambda: run_product(torch.int8, out=torch.int32, K=256, block=(128, 128, 128)),
    "persistent": run_persistent,
    "persistent-flat": lambda: run_persistent(flat=True),
    "persistent-specialized": lambda: run_persistent(ws=True, flat=True),
    "persistent-bf16": lambda: run_persistent(dtype=torch.bfloat16, grid=3),
    "pointers": run_pointers,
    "pointers-bf16": lambda: run_pointers(dtype=torch.bfloat16),
    "split-k": lambda: run_pointers(split=2),
    "device-descriptors": run_device_descriptors,
    "grouped": run_grouped,
    "fused-bias-relu": run_fused,
    "attention": run_attention,
    "attention-causal": lambda: run_attention(causal=True),
    "attention-128": lambda: run_attention(D=128),
    "attention-specialized": lambda: run_attention(ws=True),
    "attention-bf16": lambda: run_attention(dtype=torch.bfloat16),
    "two-products": run_two_products,
    "softmax": run_softmax,
    "layernorm": run_layernorm,
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(CASES))
    for name in sys.argv[1:]:
        CASES[name]()
