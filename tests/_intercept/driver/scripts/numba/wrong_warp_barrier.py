"""A call of __syncwarp() with a full mask in only two lanes, as in cuda.reduce of numba-cuda 0.30.4.

PTX lets each lane of bar.warp.sync wait until all lanes of its mask have executed it. Hardware ignores lanes that have
exited, but no document guarantees this.
"""

import numpy as np
from numba import cuda


@cuda.jit
def halved(values):
    i = cuda.threadIdx.x
    if i < 2:
        values[i] += values[i + 2]
        cuda.syncwarp()  # wrong
    if i == 0:
        values[0] += values[1]


halved[1, 32](cuda.to_device(np.ones(32)))
