"""A Numba program with an atomic histogram, device functions, constant and pinned memory, streams and events."""

import numpy as np
from numba import cuda

TABLE = np.array([1, 2, 4, 8], dtype=np.int32)


@cuda.jit(device=True)
def weight(at):
    table = cuda.const.array_like(TABLE)
    return table[at % 4]


@cuda.jit(cache=True)
def histogram(values, counts, weights):
    at = cuda.grid(1)
    if at < values.size:
        cuda.atomic.add(counts, values[at], 1)
        cuda.atomic.add(weights, values[at], weight(at))


values = np.random.default_rng(0).integers(0, 8, 200)
expected = np.zeros(8, np.int32)
np.add.at(expected, values, TABLE[np.arange(200) % 4])
stream = cuda.stream()
with cuda.pinned(values):
    given = cuda.to_device(values, stream=stream)
counts, weights = cuda.device_array(8, np.int32), cuda.to_device(np.zeros(8, np.int32), stream=stream)
counts.copy_to_device(np.zeros(8, np.int32))
begin, end = cuda.event(), cuda.event()
begin.record(stream)
histogram[2, 128, stream](given, counts, weights)
end.record(stream)
end.synchronize()
stream.synchronize()
assert begin.elapsed_time(end) > 0
assert (counts.copy_to_host() == np.bincount(values, minlength=8)).all()
assert (weights.copy_to_host() == expected).all()
