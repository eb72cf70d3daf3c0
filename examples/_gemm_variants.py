"""The choice of a variant of gemm_every_shape.py's kernel for a product, by a model of each variant's time.

The constants of the model were fitted to some 200 times of 24 products, on H200s. For times near the best time of a
product, the mean error of the model is 3.3%. On average, the variant that the model chooses takes 0.6% longer than the
best measured variant.
"""

from typing import NamedTuple

STEP_BYTES = 128  # A step along K has 128 bytes, which are 64 elements of 16 bits.
SUM_BYTES = 4


class Problem(NamedTuple):
    """A product C (m, n) = A (m, k) @ B (n, k).T. An operand that is not k_major has contiguous columns.

    `batch` is the number of matrices. An element of an operand has `item_bytes`, and an element of C has `c_bytes`.
    """

    m: int
    n: int
    k: int
    a_is_k_major: bool = True
    b_is_k_major: bool = True
    batch: int = 1
    item_bytes: int = 2
    c_bytes: int = 2
    has_pairs_of_sums: bool = False  # An accumulator register contains two sums, which CTAs cannot add.

    @property
    def steps(self) -> int:
        return -(-self.k * self.item_bytes // STEP_BYTES)


class Variant(NamedTuple):
    """The constants of the kernel, which the kernel's source explains."""

    rows: int
    columns: int
    down: int = 1
    across: int = 1
    splits: int = 1
    is_turned: bool = False

    @property
    def cluster(self) -> int:
        return self.down * self.across * self.splits

    def grid(self, problem):
        """Return the numbers of the clusters' tiles (down, across), and the number of steps of K."""
        rows, columns = (problem.n, problem.m) if self.is_turned else (problem.m, problem.n)
        return -(-rows // (self.rows * self.down)), -(-columns // (self.columns * self.across)), problem.steps

    def suits(self, problem):
        """Return whether the kernel compiles with these constants, and each CTA has work."""
        right_is_k_major = problem.a_is_k_major if self.is_turned else problem.b_is_k_major
        return (
            self.cluster <= 8
            and (right_is_k_major or self.columns % 64 == 0)  # Each box has 64 columns.
            and self.columns % (8 * self.down) == 0  # Each CTA of a cluster loads a share of the columns.
            and self.splits <= (1 if problem.has_pairs_of_sums else problem.steps)
            and (self.is_turned or self.columns * problem.c_bytes % 16 == 0)  # A row of a stored part has 16 bytes.
        )


# Products with few tiles split K and use small tiles, and products with many tiles share loads in clusters. Clusters of
# 4 CTAs leave some multiprocessors idle, and are faster only if L2 is the bottleneck. The table omits variants that
# were not the fastest for any measured size.
VARIANTS = tuple(
    Variant(rows, columns, down, across, splits, is_turned)
    for rows, widths, some_clusters in (
        (128, (256, 224, 192, 160, 128), ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1))),
        (128, (96, 64), ((1, 1, 1), (2, 1, 1))),
        (128, (32, 16), ((1, 1, 1),)),
        (128, (128, 64, 32, 16), ((1, 1, 2),)),
        (64, (64, 32), ((1, 1, 2),)),
        (64, (16, 8), ((1, 1, 1), (1, 1, 2))),
        (128, (8,), ((1, 1, 1), (1, 1, 2))),
    )
    for columns in widths
    for down, across, splits in some_clusters
    for is_turned in (False, True)
)
# AT_ONCE maps the size of a cluster to the number of clusters that an H200 runs concurrently.
AT_ONCE = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}


def clusters_at_once(multiprocessors, cluster):
    """Return the approximate number of concurrent clusters. Each cluster must fit into one part of the GPU."""
    return max(1, AT_ONCE[cluster] * multiprocessors // AT_ONCE[1])


LAUNCH_US = 5.9  # The time of a launch is measured between two events, and is 4.4 microseconds for an empty kernel.
# TILE_US is the time of each tile that does not overlap with other work, and STORE_US is the time to store a tile of
# 128 rows and 256 columns.
TILE_US, STORE_US = 0.5, 0.6
STEP_US = 0.13  # A step of K takes at least 0.13 microseconds, because a wgmma waits for the preceding wgmma.
MULTIPLY_US = 0.63  # A step with 128 rows and 256 columns takes 0.63 microseconds at a clock of about 1.65 GHz.
ARRIVE_BYTES = 150e3  # One multiprocessor receives 150 KB in a microsecond.
# All multiprocessors together receive 12 MB from L2 and 4.3 MB from DRAM in a microsecond.
L2_BYTES, DRAM_BYTES = 12e6, 4.3e6
KEPT_BYTES = 45e6  # Data of at most 45 MB is still in L2 after the preceding launch.
UNALIGNED = 1.38  # If the rows are not aligned to lines of L2, their bytes count 1.38 times.
# For a split product, one multiprocessor sends 24 KB of accumulators in a microsecond.
SPLIT_US, SEND_BYTES = 0.22, 24e3
NORM = 5  # NORM combines the times of overlapping parts: the longest part dominates the total time.


def microseconds(variant, problem, multiprocessors):
    """Return the approximate time of a product in microseconds."""
    m, n, k = problem[:3]
    down, across, steps = variant.grid(problem)
    down *= problem.batch
    rounds = -(-down * across // clusters_at_once(multiprocessors, variant.cluster))
    steps, columns = -(-steps // variant.splits), variant.columns
    area = variant.rows * columns / (128 * 256)
    line = STEP_BYTES * (1 if k * problem.item_bytes % STEP_BYTES == 0 else UNALIGNED)
    loaded_bytes = line * (variant.rows / variant.across + columns / variant.down)
    moved_bytes = problem.batch * (problem.item_bytes * (m * k + n * k) + problem.c_bytes * m * n)
    parts = (
        rounds * steps * STEP_US,
        rounds * steps * MULTIPLY_US * area,
        rounds * steps * line * (variant.rows + columns) / ARRIVE_BYTES,
        down * across * variant.cluster * steps * loaded_bytes / L2_BYTES,
        moved_bytes / DRAM_BYTES if moved_bytes > KEPT_BYTES else 0,
    )
    sent_bytes = SUM_BYTES * variant.rows * columns * (1 - 1 / variant.splits)
    send = SPLIT_US + sent_bytes / SEND_BYTES if variant.splits > 1 else 0
    tile = TILE_US + STORE_US * area
    return LAUNCH_US + sum(part**NORM for part in parts) ** (1 / NORM) + rounds * (tile + send)


def choose(problem, multiprocessors):
    """Return the fastest variant for a product.

    If one side of C is much longer, prefer, among equal variants, a variant in which few clusters load the operand of
    that side, and then a variant whose rows are along that side.
    """
    m, n = problem[:2]

    def cost(variant):
        down, across, _ = variant.grid(problem)
        along_m, along_n = (across, down) if variant.is_turned else (down, across)
        readers = along_m if n >= 2 * m else along_n if m >= 2 * n else 0
        return microseconds(variant, problem, multiprocessors), readers, variant.is_turned != (n >= 2 * m)

    return min((v for v in VARIANTS if v.suits(problem)), key=cost)
