"""The timed kernels by their purpose.

Each family has a table, a chart, and a definition of its figures.
"""

from __future__ import annotations

from dataclasses import dataclass

TWO_REGIMES = (
    "A burst is 8 launches after a pause of 0.25 s. Sustained launches follow after half a second of the same work, "
    "when the GPU's power limit sets its clock"
)


@dataclass(frozen=True)
class Family:
    """The examples that share a table.

    Attributes
    ----------
    title : str
    examples : tuple of str
    counts : str
        The necessary work from which speeds are computed, and notes on the figures.
    warm : str
        The content of L2 when a timed launch begins. The benchmark does not flush L2, so the preceding run determines
        the content.
    """

    title: str
    examples: tuple[str, ...]
    counts: str
    warm: str


FAMILIES = {
    "memory": Family(
        "Kernels that move data",
        ("copy_2d", "elementwise", "transpose", "gather_rows", "kv_tiles"),
        "each input read once and each output written once",
        "at most 50 MB of the gigabyte or more that the case moves. This data is the last writes of the preceding "
        "run, or the last reads of the example kernel, which loads with `evict_last`",
    ),
    "gemm": Family(
        "Matrix products",
        ("gemm", "gemm_every_shape"),
        f"the floating-point operations. {TWO_REGIMES}",
        "all operands of a case that moves less than 50 MB, because all runs read the same operands. For a larger "
        "case, L2 contains the last reads of the preceding run. After a run of the example kernel, L2 contains the "
        "data that this kernel loaded with `evict_last`",
    ),
    "conv": Family(
        "Convolution",
        ("conv_im2col",),
        f"the floating-point operations. {TWO_REGIMES}",
        "the weights, and the part of the image that fits into L2 together with the outputs of both runs",
    ),
    "experts": Family(
        "Mixture of experts",
        ("grouped_gemm",),
        f"the floating-point operations. {TWO_REGIMES}. The routing is on the device, and differs in each launch. The "
        "example kernel receives the experts' counts, and computes its schedule within the measured time. "
        "torch._grouped_mm and Triton, which tries five tiles for each case, receive the last row of each expert",
        "at most 50 MB of the weights for prefill, because the weights are larger. For decoding, L2 contains the "
        "weights of the few experts that have tokens, if they fit",
    ),
    "attention": Family(
        "Attention",
        ("attention",),
        "the products of queries with the keys that they attend to, and of weights with values. Each case has 16384 "
        f"tokens, and heads of 2048 elements in all. {TWO_REGIMES}",
        "the parts of the queries, keys and values (64 MB each) and of the outputs of all runs that fit",
    ),
}
