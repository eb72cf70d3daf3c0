"""The timed kernels by their purpose: each family has a table, a chart, and a definition of its figures."""

from __future__ import annotations

from dataclasses import dataclass

TWO_REGIMES = (
    "Burst: 8 launches after a pause of 0.25 s; sustained: after half a second of the same work in turns, "
    "when the GPU's power limit sets its clock"
)


@dataclass(frozen=True)
class Family:
    """Examples with a common table.

    Attributes
    ----------
    title : str
    examples : tuple of str
    counts : str
        The necessary work from which speeds are computed, and notes on the figures.
    warm : str
        The content of L2 when a timed launch begins. Nothing is flushed, so the preceding run determines it.
    """

    title: str
    examples: tuple[str, ...]
    counts: str
    warm: str


FAMILIES = {
    "memory": Family(
        "Kernels that move data",
        ("copy_2d", "transpose", "gather_rows", "kv_tiles"),
        "each input read once and each output written once",
        "at most its 50 MB of the gigabyte or more that the case moves: the end of the writes of "
        "the preceding run, or of our reads, which our kernel asks L2 to keep",
    ),
    "gemm": Family(
        "Matrix products",
        ("gemm", "gemm_every_shape"),
        f"its floating-point operations. {TWO_REGIMES}",
        "all operands of the cases that move less than its 50 MB, where all runs read the same ones; for larger "
        "cases the end of the reads of the preceding run; if that is ours, the data "
        "that it asked L2 to keep",
    ),
    "conv": Family(
        "Convolution",
        ("conv_im2col",),
        f"its floating-point operations. {TWO_REGIMES}",
        "the weights, and the part of the image that fits into L2 next to the outputs of both runs",
    ),
    "experts": Family(
        "Mixture of experts",
        ("grouped_gemm",),
        f"its floating-point operations. {TWO_REGIMES}. The routing is on the device, and differs in each launch. "
        f"Ours receives the experts' "
        "counts, and makes its schedule within the time. torch._grouped_mm and Triton, which "
        "tries five tiles for each case, receive the ends of their rows",
        "for prefill, at most 50 MB of the weights, which are larger; for decoding, the weights "
        "of the few experts that have tokens, if they fit",
    ),
    "attention": Family(
        "Attention",
        ("attention",),
        "the products of queries with the keys that they attend to, and of weights with values; 16384 tokens, and"
        " heads of "
        f"2048 elements in all. {TWO_REGIMES}",
        "the part of queries, keys and values, 64 MB each, and of the outputs of all runs that fits into L2",
    ),
}
