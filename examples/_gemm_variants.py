"""Which variant of the kernel of gemm_every_shape.py suits a product: a model of what each would take."""

from typing import NamedTuple

ROWS, DEPTH = 128, 64  # of a tile


class Problem(NamedTuple):
    """C (m, n) = A (m, k) @ B (n, k).T; of an operand that is not k_major, columns are contiguous."""

    m: int
    n: int
    k: int
    a_is_k_major: bool = True
    b_is_k_major: bool = True


class Variant(NamedTuple):
    """The kernel's numbers, as its source explains them."""

    columns: int
    down: int = 1
    across: int = 1
    splits: int = 1
    is_turned: bool = False

    @property
    def cluster(self) -> int:
        return self.down * self.across * self.splits

    def grid(self, problem):
        """Clusters' tiles (down, across) and the steps of K."""
        rows, columns = (problem.n, problem.m) if self.is_turned else (problem.m, problem.n)
        return -(-rows // (ROWS * self.down)), -(-columns // (self.columns * self.across)), -(-problem.k // DEPTH)

    def suits(self, problem):
        """Whether the kernel can be compiled so, and has something to do for each CTA."""
        right_is_k_major = problem.a_is_k_major if self.is_turned else problem.b_is_k_major
        return (
            self.cluster <= 8
            and (right_is_k_major or self.columns % 64 == 0)  # it comes in boxes of 64 columns
            and self.splits <= -(-problem.k // DEPTH)
        )


# Clock cycles of a multiprocessor, but for bytes.
LAUNCH, TILE, SPLIT = 3000, 1500, 1500  # a launch; a tile's beginning and end; sums on their way to other CTAs
SHARED_BYTES, L2_BYTES, DRAM_BYTES = 128, 40, 2400  # a cycle: a multiprocessor's shared memory and L2; all DRAM


def clusters_at_once(multiprocessors, cluster):
    """Clusters of so many CTAs lie in one group of 16 or 18 multiprocessors each."""
    return max(1, multiprocessors // cluster if cluster <= 2 else multiprocessors // 16 * 16 // cluster)


def cycles(variant, problem, multiprocessors):
    """What the product takes, about."""
    down, across, steps = variant.grid(problem)
    rounds = -(-down * across // clusters_at_once(multiprocessors, variant.cluster))
    steps = -(-steps // variant.splits)
    columns = variant.columns
    step_bytes = 2 * DEPTH * (ROWS / variant.across + columns / variant.down)
    arrives, is_read = 2 * DEPTH * (ROWS + columns), 2 * DEPTH * 2 * (64 + columns)  # bytes, by two warpgroups
    step = max(4 * columns, (arrives + is_read) / SHARED_BYTES, step_bytes / L2_BYTES)
    dram = 2 * (problem.m * problem.k + problem.n * problem.k) / DRAM_BYTES
    return LAUNCH + max(rounds * (steps * step + TILE), dram) + (variant.splits > 1) * SPLIT * columns / 64


VARIANTS = [
    Variant(columns, down, across, splits, is_turned)
    for columns in (16, 32, 64, 96, 128, 160, 192, 224, 256)
    for down, across in ((1, 1), (2, 1), (1, 2), (2, 2))
    for splits in (1, 2, 3, 4, 8)
    for is_turned in (False, True)
]


def choose(problem, multiprocessors):
    """The variant that takes least."""
    return min((v for v in VARIANTS if v.suits(problem)), key=lambda v: cycles(v, problem, multiprocessors))
