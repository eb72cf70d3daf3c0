"""The kernels that are timed, by what they do: a table and a chart for each family, and what their figures count."""

from __future__ import annotations

from dataclasses import dataclass

TWO_REGIMES = (
    "Burst: 8 launches after a pause of 0.25 s; sustained: after half a second of the same work in turns, when the "
    "power that the GPU may draw sets its clock"
)


@dataclass(frozen=True)
class Family:
    """Examples that are shown together.

    Attributes
    ----------
    title : str
    examples : tuple of str
    counts : str
        What the problem needs, by which speeds are counted; and what else is said of the figures.
    warm : str
        What lies in L2 when a timed launch begins: nothing is flushed, so that it is what the run before has left.
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
        "at most its 50 MB of the gigabyte or more that the case moves: the end of what the run before wrote, or of "
        "what ours read, which it asks L2 to keep",
    ),
    "gemm": Family(
        "Matrix products",
        ("gemm", "gemm_every_shape"),
        f"its floating-point operations. {TWO_REGIMES}",
        "all operands of the cases that move less than its 50 MB, where all runs read the same ones; of larger cases "
        "the end of what the run before read, and with ours before, what it asked L2 to keep",
    ),
    "conv": Family(
        "Convolution",
        ("conv_im2col",),
        f"its floating-point operations. {TWO_REGIMES}",
        "the weights, and of the image what L2 has room for beside the outputs of both runs",
    ),
    "experts": Family(
        "Mixture of experts",
        ("grouped_gemm",),
        f"its floating-point operations. {TWO_REGIMES}. The routing lies on the device, another in each launch: ours "
        "is given the experts' counts, and makes its schedule within the time; torch._grouped_mm and Triton, which "
        "tries five tiles for each case, are given where their rows end",
        "of prefill, at most its 50 MB of the weights, which are larger; of decoding, the weights of the few experts "
        "that have tokens, if there is room for them",
    ),
    "attention": Family(
        "Attention",
        ("attention",),
        "the products of queries with the keys that they see, and of weights with values; 16384 tokens, and heads of "
        f"2048 elements in all. {TWO_REGIMES}",
        "of queries, keys and values, 64 MB each, and the outputs of all runs what L2 has room for",
    ),
}
