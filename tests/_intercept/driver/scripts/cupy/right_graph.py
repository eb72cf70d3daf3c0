"""A graph of CuPy that is captured once and launched twice. No kernel runs during the capture."""

import cupy as cp
import numpy as np

stream = cp.cuda.Stream(non_blocking=True)
with stream:
    values = cp.arange(100, dtype=np.float32)
    total = cp.zeros(100, np.float32)
    stream.begin_capture()
    total += 2 * values
    graph = stream.end_capture()
assert not total.get().any()
for _ in range(2):
    graph.launch(stream)
stream.synchronize()
assert (total.get() == 4 * np.arange(100)).all()
