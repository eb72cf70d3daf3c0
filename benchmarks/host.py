"""What needs no GPU: rules, codec, diff, reading a tensor, and the emulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cuda_tma import check, decode, emulate, encode
from cuda_tma._make import encode as _encode
from cuda_tma._read import export as _export
from cuda_tma.codec import diff
from cuda_tma.options import TensorMapOptions
from cuda_tma.params import TiledParams

from .timing import Case, Table, measure


def unavailable() -> str:
    return ""


def tables(repeats: int, runs: int) -> list[Table]:
    knowledge = [case for rank in (2, 5) for case in knowledge_cases(rank)]
    return [
        Table("Without a GPU: rules, codec and diff", measure(knowledge, repeats), ("All maps are legal ones.",)),
        Table("Without a GPU: from a tensor to params", measure(reading_cases(), repeats)),
        Table("Without a GPU: the emulator", measure([emulator_case(), sweep_case()], repeats)),
    ]


def contiguous(rank: int) -> TiledParams:
    """A float32 tensor of 64 x ... x 64, in boxes of 32 x 8 x 2 x ..., with the 128-byte swizzle."""
    return TiledParams(
        data_type=7,
        global_address=1 << 32,
        global_dim=(64,) * rank,
        global_strides=tuple(4 * 64 ** (i + 1) for i in range(rank - 1)),
        box_dim=(32, 8, 2, 2, 2)[:rank],
        element_strides=(1,) * rank,
        swizzle=3,
        l2_promotion=2,
    )


def knowledge_cases(rank: int) -> list[Case]:
    params = contiguous(rank)
    raw, other = encode(params), encode(replace(params, swizzle=0))
    goals = {"check": 20, "encode": 15, "decode": 15} if rank == 2 else {}
    runs = {
        "check": lambda: check(params),
        "encode": lambda: encode(params),
        "decode": lambda: decode(raw),
        "diff": lambda: diff(raw, other),
    }
    return [Case(f"`{name}`, rank {rank}", run, goals.get(name)) for name, run in runs.items()]


def reading_cases() -> list[Case]:
    array = np.zeros((128, 128), np.float32)
    options = TensorMapOptions(box_dim=(32, 32), swizzle="128B")
    export_tensor, tiled_params = _export.export_tensor, _encode.tiled_params
    exported = export_tensor(array)
    cases = [
        Case("`export_tensor` of a NumPy array", lambda: export_tensor(array)),
        Case("`tiled_params`: driver order", lambda: tiled_params(exported, options)),
        Case("`TensorMapOptions`", lambda: TensorMapOptions(box_dim=(32, 32), swizzle="128B")),
    ]
    try:
        import torch
    except ImportError:
        return cases
    tensor = torch.zeros(128, 128)
    return [Case("`export_tensor` of a torch tensor on the CPU", lambda: export_tensor(tensor)), *cases]


def emulator_case() -> Case:
    params = TiledParams(
        data_type=9,
        global_address=0,
        global_dim=(128, 128),
        global_strides=(256,),
        box_dim=(64, 64),
        element_strides=(1, 1),
        swizzle=3,
    )
    memory = np.zeros(128 * 256, np.uint8)
    return Case(
        "`emulate.load`, a 64 x 64 tile of bf16 with the 128-byte swizzle",
        lambda: emulate.load(params, memory, (64, 32)),
        goal_us=200,
    )


def sweep_case() -> Case:
    """Every tile of a large matrix once."""
    size, rows, columns = 4096, 128, 32
    params = TiledParams(
        data_type=7,
        global_address=0,
        global_dim=(size, size),
        global_strides=(4 * size,),
        box_dim=(columns, rows),
        element_strides=(1, 1),
    )
    memory = np.zeros(4 * size * size, np.uint8)

    def sweep() -> int:
        starts = ((c, r) for r in range(0, size, rows) for c in range(0, size, columns))
        return sum(emulate.load(params, memory, start).tx_bytes for start in starts)

    return Case(f"`emulate.load`, all {size} x {size} of fp32 in {rows} x {columns} tiles", sweep, goal_us=10e6)
