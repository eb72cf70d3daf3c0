"""A call of __syncwarp() with a full mask in only two lanes, while the other lanes wait at a barrier of the block.

PTX lets each lane of bar.warp.sync wait until all lanes of its mask have executed it. If the other lanes only ended, as
in cuda.reduce of numba-cuda 0.30.4, the finding would be advice.
"""

import numpy as np
from numba import cuda


@cuda.jit
def halved(values):
    i = cuda.threadIdx.x
    if i < 2:
        values[i] += values[i + 2]
        cuda.syncwarp()  # wrong
    cuda.syncthreads()
    if i == 0:
        values[0] += values[1]


halved[1, 32](cuda.to_device(np.ones(32)))
