"""The cases of gemm_every_shape.py, which are small cases for checks, and large cases for times."""

from typing import NamedTuple

from _gemm_variants import Problem


class Case(NamedTuple):
    """A case, whose `activation` is None, relu, gelu or silu."""

    problem: Problem
    dtype: str = "bfloat16"
    has_bias: bool = False
    activation: str | None = None


SMALL = (
    Case(Problem(1, 8, 8)),
    Case(Problem(3, 520, 2000), "bfloat16", True),
    Case(Problem(1000, 520, 200, True, False), "float16", True, "gelu"),
    Case(Problem(72, 2048, 136, False, True), "bfloat16", True, "silu"),
    Case(Problem(2000, 4104, 1000, False, False), "float16", False, "relu"),
)
LARGE = tuple(
    Case(Problem(*sizes))
    for sizes in (
        *((size, size, size) for size in (2048, 3072, 4096, 5120, 6000, 8192, 16384)),
        (8192, 8192, 1024),
        (4096, 7168, 16384),
        (4096, 24576, 1536),
        (128, 4096, 4096),
        (64, 7168, 2048),
        (512, 4096, 4096),
        (1, 14336, 4096),
        (8, 4096, 14336),
        (16, 6144, 4096),
        (32, 8192, 8192),
        (64, 4096, 14336),
        (128, 4096, 14336),
        (256, 8192, 8192),
        (1024, 14336, 4096),
        (1111, 3000, 2040),
        (2500, 5000, 3000),
        (16384, 4096, 4096),
    )
)
