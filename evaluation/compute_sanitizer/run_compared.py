"""Run one kernel on a GPU, in a separate process.

Standard input contains the launch as JSON.

The last line of the output is the result as JSON. The field ``ended`` is ``"ends"``, ``"hangs"``, or the name of a CUDA
error. If the kernel ended, ``values`` contains the arrays of the kernel. If a kernel does not end within
``patience_s``, the process ends without waiting for it.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

import numpy as np
from cuda.bindings import driver
from cuda.core import LaunchConfig

import cuda_tma

_SPARE_S = 60  # Under a tool, the start of a process takes up to 60 seconds.


def main() -> None:
    """Run the kernel that standard input describes."""
    case = json.load(sys.stdin)
    signal.alarm(int(case["patience_s"]) + _SPARE_S)  # The alarm ends the process even if the kernel hangs.
    device = cuda_tma.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffers = _buffers(device, stream, case["elements"])
    given = {**buffers, "tiles": case["tiles"]}
    for name, of in (("source", "in"), ("target", "out")):
        given[name] = _map(int(buffers[of].handle), case)
    kernel = cuda_tma.compile(case["source"], "kernel")
    # In a launch with clusters, the extents of the grid are in clusters.
    clusters = {"cluster": case["cluster"]} if case["cluster"] > 1 else {}
    config = LaunchConfig(grid=case["grid"] // case["cluster"], block=case["block"], **clusters)
    print("launches", flush=True)
    cuda_tma.launch(stream, config, kernel, *(given[name] for name in case["arguments"]))
    ended = _ended(int(stream.handle), case["patience_s"])
    values = _values(buffers, case["elements"]) if ended == "ends" else ""
    print(json.dumps({"ended": ended, "values": values}), flush=True)
    if ended == "hangs":
        # The process exits without cleanup, because a normal exit would wait for the kernel.
        os.kill(os.getpid(), signal.SIGKILL)


def _buffers(device: Any, stream: Any, elements: int) -> dict[str, Any]:
    data = {
        "in": np.arange(elements, dtype=np.int32),
        **{name: np.zeros(elements, np.int32) for name in ("out", "other")},
    }
    buffers = {name: device.allocate(array.nbytes, stream=stream) for name, array in data.items()}
    stream.sync()
    for name, array in data.items():
        (error,) = driver.cuMemcpyHtoD(int(buffers[name].handle), array.ctypes.data, array.nbytes)
        assert not error, error
    return buffers


def _map(address: int, case: dict[str, Any]) -> Any:
    box = tuple(case["box"])
    inner = box[1:]
    shape = (case["elements"] // int(np.prod(inner, dtype=int)), *inner)
    params = cuda_tma.params_of(cuda_tma.TensorSpec(shape, "int32", address=address), box_dim=box)
    return cuda_tma.TensorMapDescriptor.from_bytes(cuda_tma.encode(params))


def _ended(stream: int, patience_s: float) -> str:
    """Poll until the launch ends, and return its outcome, because a wait might never return."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        (result,) = driver.cuStreamQuery(stream)
        if result == driver.CUresult.CUDA_SUCCESS:
            return "ends"
        if result != driver.CUresult.CUDA_ERROR_NOT_READY:
            return result.name
        time.sleep(0.01)
    return "hangs"


def _values(buffers: dict[str, Any], elements: int) -> str:
    """Return the packed values of the arrays ``out`` and ``other``."""
    found = np.zeros((2, elements), np.int32)
    for row, name in zip(found, ("out", "other"), strict=True):
        (error,) = driver.cuMemcpyDtoH(row.ctypes.data, int(buffers[name].handle), row.nbytes)
        assert not error, error
    return base64.b64encode(zlib.compress(found.tobytes())).decode()


if __name__ == "__main__":
    main()
