"""Which variant of the kernel of gemm_every_shape.py suits a product: a model of what each would take.

Its constants were fitted to some 250 times of 24 products, on one H200, which they meet within 3% in the mean. Among
what was timed, the model's choice takes 0.7% longer than the best, in the mean.
"""

from typing import NamedTuple

ROWS, DEPTH = 128, 64  # of a tile, in elements, which are 16 bits
ELEMENT_BYTES, SUM_BYTES = 2, 4


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


# Who has few tiles divides K, and tiles are then small; who has many shares what is loaded. A cluster of 4 would leave
# multiprocessors idle.
VARIANTS = (
    *(
        Variant(columns, down, across, 1, is_turned)
        for columns in (256, 224, 192, 160, 128, 96, 64, 32, 16)
        for down, across in ((2, 1), (1, 1), (1, 2))[: 3 if columns > 64 else 2]
        for is_turned in (False, True)
    ),
    *(
        Variant(columns, down, 1, 2, is_turned)
        for columns in (128, 96, 64, 32, 16)
        for down in (2, 1)
        for is_turned in (False, True)
    ),
)
AT_ONCE = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}  # clusters of so many CTAs, on the 132 multiprocessors of an H200


def clusters_at_once(multiprocessors, cluster):
    """How many clusters of so many CTAs there is room for: about, as each lies within one part of the GPU."""
    return max(1, AT_ONCE[cluster] * multiprocessors // AT_ONCE[1])


LAUNCH_US = 6.0  # from event to event, of which an empty kernel has 4.4
TILE_US, STORE_US = 0.5, 0.5  # of each tile: what is not hidden behind the one before; of 256 columns of it
STEP_US = 0.01  # of each step of K, beside ...
MULTIPLY_US = 0.62  # ... 256 columns of it: the clock is then about 1.65 GHz
ARRIVE_BYTES = 137e3  # in a microsecond, at one multiprocessor
L2_BYTES, DRAM_BYTES = 13e6, 4.34e6  # in a microsecond, for all
KEPT_BYTES = 45e6  # what moves less finds it in L2, from the launch before
UNALIGNED = 1.45  # as much moves where rows do not begin with a line of L2
SPLIT_US, SEND_BYTES = 0.1, 23e3  # sums on their way to the others of a split; in a microsecond, at one multiprocessor
NORM = 5  # what takes longest decides, and what takes almost as long adds a little


def microseconds(variant, problem, multiprocessors):
    """What the product takes, about."""
    m, n, k = problem[:3]
    down, across, steps = variant.grid(problem)
    rounds = -(-down * across // clusters_at_once(multiprocessors, variant.cluster))
    steps, columns = -(-steps // variant.splits), variant.columns
    line = DEPTH * ELEMENT_BYTES * (1 if k % DEPTH == 0 else UNALIGNED)
    loaded_bytes = line * (ROWS / variant.across + columns / variant.down)
    moved_bytes = ELEMENT_BYTES * (m * k + n * k + m * n)
    parts = (
        rounds * steps * (MULTIPLY_US * columns / 256 + STEP_US),
        rounds * steps * line * (ROWS + columns) / ARRIVE_BYTES,
        down * across * variant.cluster * steps * loaded_bytes / L2_BYTES,
        moved_bytes / DRAM_BYTES if moved_bytes > KEPT_BYTES else 0,
    )
    sent_bytes = SUM_BYTES * ROWS * columns * (1 - 1 / variant.splits)
    send = SPLIT_US + sent_bytes / SEND_BYTES if variant.splits > 1 else 0
    tile = TILE_US + STORE_US * columns / 256
    return LAUNCH_US + sum(part**NORM for part in parts) ** (1 / NORM) + rounds * (tile + send)


def choose(problem, multiprocessors):
    """The variant that takes least."""
    return min((v for v in VARIANTS if v.suits(problem)), key=lambda v: microseconds(v, problem, multiprocessors))
