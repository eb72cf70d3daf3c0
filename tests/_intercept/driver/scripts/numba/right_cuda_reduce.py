"""A reduction of Numba whose last warp barrier names lanes that have ended. The sanitizer reports advice."""

import numpy as np
from numba import cuda

values = np.random.default_rng(0).integers(0, 100, 1000).astype(np.float64)
assert cuda.reduce(lambda a, b: a + b)(values) == values.sum()
assert cuda.reduce(lambda a, b: a if a > b else b)(values) == values.max()
