"""A histogram whose threads add without an atomic operation."""

import numpy as np
from numba import cuda


@cuda.jit
def histogram(values, counts):
    at = cuda.grid(1)
    if at < values.size:
        counts[values[at]] += 1  # wrong


values = np.random.default_rng(0).integers(0, 8, 200)
counts = cuda.to_device(np.zeros(8, np.int32))
histogram[2, 128](cuda.to_device(values), counts)
