"""A kernel that stores beyond the end of its array."""

import numpy as np
from numba import cuda


@cuda.jit
def increment(values):
    at = cuda.grid(1)
    values[at] += 1  # wrong


values = cuda.to_device(np.zeros(100, np.float32))
increment[1, 128](values)
