"""The matrix products of experts in Triton. Device memory contains the row ends, and each program processes tiles of
all experts.

Loads use tensor descriptors, and stores use pointers, because a tile may end where the rows of the next expert begin.
Autotuning chooses the tiles for each problem. Triton needs kernels in a file, so only the measurement of Triton imports
this file.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def boxes(arguments):
    """Return the boxes of the descriptors for the tile that autotuning is trying."""
    m, n, k = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    arguments["tokens"].block_shape, arguments["weights"].block_shape = [m, k], [n, k]


CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64}, num_warps=warps, num_stages=stages, pre_hook=boxes)
    for m, n, warps, stages in ((128, 256, 8, 3), (128, 256, 8, 4), (128, 128, 8, 4), (128, 128, 4, 4), (64, 128, 4, 5))
]


def briefly(call, quantiles):
    return triton.testing.do_bench(call, warmup=5, rep=20, quantiles=quantiles)


@triton.autotune(configs=CONFIGS, key=["count", "n", "k", "experts"], do_bench=briefly)
@triton.jit
def experts_kernel(
    tokens, weights, output, ends, count, n, k, experts,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    before, first = 0, 0
    across = tl.cdiv(n, BLOCK_N)
    for expert in range(experts):
        end = tl.load(ends + expert)
        down = tl.cdiv(end - first, BLOCK_M)
        while tile < before + down * across:
            row = first + (tile - before) % down * BLOCK_M
            column = (tile - before) // down * BLOCK_N
            sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for at in range(0, k, BLOCK_K):
                some = tokens.load([row, at])
                weight = weights.load([expert * n + column, at])
                sums = tl.dot(some, weight.T, sums)
            rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
            places = output + rows.to(tl.int64)[:, None] * n + columns[None, :]
            tl.store(places, sums.to(output.dtype.element_ty), (rows < end)[:, None] & (columns < n)[None, :])
            tile += tl.num_programs(0)
        before += down * across
        first = end


def of_experts(tokens, weights, ends):
    """Return a function that multiplies the tokens of each expert by the transpose of the expert's weights."""
    experts, n, k = weights.shape
    output = torch.empty(len(tokens), n, device=tokens.device, dtype=tokens.dtype)
    operands = [TensorDescriptor.from_tensor(operand, [1, 64]) for operand in (tokens, weights.flatten(0, 1))]
    programs = torch.cuda.get_device_properties(tokens.device).multi_processor_count
    return partial(_launched, (programs,), output, (*operands, output, ends, len(tokens), n, k, experts))


def _launched(grid, output, arguments):
    experts_kernel[grid](*arguments)
    return output
