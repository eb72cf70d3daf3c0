"""Calls of vLLM's Triton kernels: ``python vllm_kernels.py FOLDER_OF_THE_WHEEL CASE``.

vLLM needs torch for CUDA and its compiled extensions. This script imports the files of kernels unchanged, and replaces
the modules that they import, except the modules in REAL, by stand-ins.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import torch
import triton
import triton.language as tl

sys.path.insert(0, sys.argv[1])
ATTENTION = "vllm.v1.attention.ops"
QUANTIZED = "vllm.model_executor.layers.quantization"
REAL = {
    "vllm.utils.math_utils",
    "vllm.model_executor.determinism.batch_invariant_configs",
    f"{ATTENTION}.triton_attention_helpers",
}


class Capability(NamedTuple):
    """A compute capability, which vLLM also compares with tuples."""

    major: int
    minor: int


PLATFORM = SimpleNamespace(
    is_rocm=lambda: False, is_cuda=lambda: True, is_cuda_alike=lambda: True, is_cpu=lambda: False, is_xpu=lambda: False,
    fp8_dtype=lambda: torch.float8_e4m3fn, has_device_capability=lambda *_: True,
    is_device_capability_family=lambda *_: False, get_device_capability=lambda *_: Capability(9, 0),
    is_arch_support_pdl=lambda: False,
)  # fmt: skip
MODES = {"NONE": 0, "INT8_PER_TOKEN_HEAD": 2, "FP8_PER_TOKEN_HEAD": 3, "INT4_PER_TOKEN_HEAD": 4}
VALUES = {
    "vllm.triton_utils": {"triton": triton, "tl": tl, "use_tensor_descriptor": lambda *_: False},
    "vllm.platforms": {"current_platform": PLATFORM},
    "vllm.envs": {"VLLM_BATCH_INVARIANT": False},
    "vllm.utils.platform_utils": {"num_compute_units": lambda *_: 132},
    "vllm.utils.mem_utils": {"get_max_shared_memory_bytes": lambda *_: 232448},
    "vllm.v1.kv_cache_interface": {"KVQuantMode": SimpleNamespace(**MODES)},
    "vllm.v1.attention.backends.utils": {"PAD_SLOT_ID": -1, "NULL_BLOCK_ID": 0},
}  # fmt: skip


class StandIn(ModuleType):
    """A module whose missing names are mocks."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class Stubs:
    """The finder and loader of the stand-ins."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, Stubs) if name.partition(".")[0] == "vllm" and name not in REAL else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        module = StandIn(spec.name)
        module.__path__ = [f"{sys.argv[1]}/{spec.name.replace('.', '/')}"]
        vars(module).update(VALUES.get(spec.name, {}))
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        pass


sys.meta_path.insert(0, Stubs)


def of(name: str) -> ModuleType:
    REAL.add(name)
    return importlib.import_module(name)


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def integers(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Return causal attention of the last queries of one sequence, in float32."""
    groups = q.shape[1] // k.shape[1]
    k, v = (each.float().repeat_interleave(groups, 1) for each in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) * scale
    visible = torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).tril(len(k) - len(q))
    return torch.einsum("hqk,khd->qhd", torch.softmax(scores.masked_fill(~visible, float("-inf")), -1), v)


def close(found: torch.Tensor, expected: torch.Tensor, bound: float) -> None:
    torch.testing.assert_close(found.float(), expected.float(), rtol=bound, atol=bound * float(expected.abs().max()))


LENGTHS, QUERIES, HEADS, KV_HEADS, HEAD, PAGE = (37, 70), (5, 33), 4, 2, 64, 16


def paged() -> tuple[Any, ...]:
    """Return the queries, and keys and values of two sequences, as lists and in pages, with the table of pages.

    As in vLLM, a row of the table has entries for a multiple of 128 tokens.
    """
    q = normal(sum(QUERIES), HEADS, HEAD)
    lists = [[normal(each, KV_HEADS, HEAD) for each in LENGTHS] for _ in range(2)]
    table = integers([7, 2, 5, 0, 0, 0, 0, 0], [1, 9, 4, 8, 3, 0, 0, 0])
    pages = [torch.zeros(10, PAGE, KV_HEADS, HEAD, dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    for values, cache in zip(lists, pages, strict=True):
        for rows, sequence in zip(table.tolist(), values, strict=True):
            for at, each in enumerate(sequence.split(PAGE)):
                cache[rows[at], : len(each)] = each
    return q, *lists, *pages, table


def unified() -> None:
    q, ks, vs, k, v, table = paged()
    out = torch.empty_like(q)
    of(f"{ATTENTION}.triton_unified_attention").unified_attention(
        q, k, v, out, integers(0, QUERIES[0], sum(QUERIES)), max(QUERIES), integers(*LENGTHS), max(LENGTHS), 0.125,
        True, (-1, -1), table, 0.0, None, None, None,
    )  # fmt: skip
    for rows, found, one, other in zip(q.split(QUERIES), out.split(QUERIES), ks, vs, strict=True):
        close(found, attention(rows, one, other, 0.125), 0.02)


def unified_split() -> None:
    """Decode one token of each sequence, with the keys in segments that a second kernel reduces."""
    _, ks, vs, k, v, table = paged()
    q = normal(2, HEADS, HEAD)
    out, segments = torch.empty_like(q), 4
    sums = [torch.empty(2, HEADS, segments, *rest, device="cuda") for rest in ((HEAD,), (), ())]
    of(f"{ATTENTION}.triton_unified_attention").unified_attention(
        q, k, v, out, integers(0, 1, 2), 1, integers(*LENGTHS), max(LENGTHS), 0.125, True, (-1, -1), table, 0.0, None,
        None, None, 64, segments, *sums,
    )  # fmt: skip
    for at in range(2):
        close(out[at : at + 1], attention(q[at : at + 1], ks[at], vs[at], 0.125), 0.02)


def prefix() -> None:
    q, ks, vs, k, v, table = paged()
    news = [torch.cat([each[-count:] for each, count in zip(lists, QUERIES, strict=True)]) for lists in (ks, vs)]
    keys = k.view(10, PAGE, KV_HEADS, HEAD // 8, 8).permute(0, 2, 3, 1, 4).contiguous()
    values = v.permute(0, 2, 3, 1).contiguous()
    out, one = torch.empty_like(q), torch.ones(1, device="cuda")
    of(f"{ATTENTION}.prefix_prefill").context_attention_fwd(
        q, *news, out, "auto", keys, values, table, integers(0, QUERIES[0], sum(QUERIES)), integers(*LENGTHS),
        max(LENGTHS), max(QUERIES), one, one,
    )  # fmt: skip
    for rows, found, first, other in zip(q.split(QUERIES), out.split(QUERIES), ks, vs, strict=True):
        close(found, attention(rows, first, other, 0.125), 0.02)


def decode() -> None:
    _, ks, vs, k, v, table = paged()
    q, splits = normal(2, HEADS, HEAD), 4
    out, lse = torch.empty_like(q), torch.empty(2, HEADS, device="cuda")
    parts = torch.empty(2, HEADS, splits, HEAD + 1, device="cuda")
    of(f"{ATTENTION}.triton_decode_attention").decode_attention_fwd(
        q, k, v, out, lse, table, integers(*LENGTHS), parts, splits, 0.125, PAGE
    )
    for at in range(2):
        close(out[at : at + 1], attention(q[at : at + 1], ks[at], vs[at], 0.125), 0.02)


def merge() -> None:
    outputs, sums = [normal(9, 4, 64) for _ in range(2)], [normal(4, 9, dtype=torch.float32) for _ in range(2)]
    merged, total = torch.empty_like(outputs[0]), torch.empty_like(sums[0])
    of(f"{ATTENTION}.triton_merge_attn_states").merge_attn_states(
        merged, outputs[0], sums[0], outputs[1], sums[1], total
    )
    weights = torch.softmax(torch.stack(sums), 0).transpose(1, 2)[..., None]
    close(merged, (weights * torch.stack(outputs).float()).sum(0), 0.01)
    close(total, torch.logsumexp(torch.stack(sums), 0), 1e-4)


def awq(split: int) -> None:
    """Multiply by weights of 4 bits in AWQ's order, or dequantize the weights (without a split)."""
    rows, columns, group = 128, 64, 64
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    weights, zeros = (torch.randint(0, 16, (each, columns)) for each in (rows, rows // group))
    packed = [(each.view(len(each), -1, 8) << (order * 4)).sum(-1).to(torch.int32).cuda() for each in (weights, zeros)]
    scales = normal(rows // group, columns, dtype=torch.float16)
    spread = zeros.repeat_interleave(group, 0)
    real = (weights - spread).cuda().float() * scales.float().repeat_interleave(group, 0)
    module = of(f"{QUANTIZED}.awq_triton")
    if not split:
        return close(module.awq_dequantize_triton(packed[0], scales, packed[1]), real, 0.001)
    x = normal(20, rows, dtype=torch.float16)
    close(module.awq_gemm_triton(x, packed[0], scales, packed[1], split), x.float() @ real, 0.004)


def moe() -> None:
    tokens, experts, top, block = 20, 4, 2, 16
    a, b = normal(tokens, 64), normal(experts, 96, 64)
    chosen = torch.stack([torch.randperm(experts)[:top] for _ in range(tokens)])
    weights = torch.rand(tokens, top, device="cuda")
    ids: list[int] = []
    blocks: list[int] = []
    for expert in range(experts):
        mine = (chosen.flatten() == expert).nonzero().flatten().tolist()
        mine += [tokens * top] * (-len(mine) % block)
        ids, blocks = ids + mine, blocks + [expert] * (len(mine) // block)
    out = torch.zeros(tokens, top, 96, dtype=torch.bfloat16, device="cuda")
    config = {"BLOCK_SIZE_M": block, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 4}
    module = of("vllm.model_executor.layers.fused_moe.fused_moe")
    module.resolve_moe_use_td = lambda *_: False
    module.invoke_fused_moe_triton_kernel(
        a, b, out, None, None, weights, integers(*ids), integers(*blocks), integers(len(ids)), True, top, config,
        tl.bfloat16, False, False, False, False, False,
    )  # fmt: skip
    expected = torch.einsum("tk,tenk->ten", a.float(), b.float()[chosen.to(b.device)]) * weights[..., None]
    close(out, expected, 0.01)


def scaled() -> None:
    a, b = (normal(*shape, dtype=torch.float32).to(torch.float8_e4m3fn) for shape in ((40, 128), (96, 128)))
    scales = [torch.rand(each, 1, device="cuda") for each in (40, 96)]
    found = of(f"{QUANTIZED}.compressed_tensors.triton_scaled_mm").triton_scaled_mm(
        a, b.t(), *scales, torch.bfloat16, None, 32, 32, 32, use_heuristic=False, use_td=False
    )
    close(found, (a.float() * scales[0]) @ (b.float() * scales[1]).t(), 0.01)


def invariant() -> None:
    a, b, bias = normal(150, 192), normal(192, 130), normal(130)
    found = of("vllm.model_executor.determinism.batch_invariant").matmul_persistent(a, b, bias)
    close(found, a.float() @ b.float() + bias.float(), 0.01)


def conv() -> None:
    lengths, dim, width = (5, 19), 32, 4
    x, weight, bias = normal(sum(lengths), dim).t(), normal(dim, width), normal(dim)
    states = torch.zeros(3, width - 1, dim, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
    found = of("vllm.model_executor.layers.mamba.ops.causal_conv1d").causal_conv1d_fn(
        x, weight, bias, states, integers(0, 5, 24), integers(1, 2), torch.zeros(2, dtype=torch.bool, device="cuda")
    )
    expected = []
    for each in x.float().split(lengths, 1):
        padded = torch.nn.functional.pad(each, (width - 1, 0))[None]
        expected.append(torch.nn.functional.conv1d(padded, weight.float()[:, None], bias.float(), groups=dim)[0])
    close(found, torch.nn.functional.silu(torch.cat(expected, 1)), 0.02)


torch.manual_seed(5)
{
    "unified": unified, "unified_split": unified_split, "prefix": prefix, "decode": decode, "merge": merge,
    "awq_dequantize": lambda: awq(0), "awq_gemm": lambda: awq(2), "moe": moe, "scaled": scaled, "invariant": invariant,
    "conv": conv,
}[sys.argv[2]]()  # fmt: skip
print("Passed")
