"""``python -m tests.gpu.hang_child NUMBER ...``: planted hangs, one after the other, in a process that may hang itself.

A line of JSON for each: what was said and when, and whether the process launches again.
"""

from __future__ import annotations

import json
import os
import sys
import time

import torch
from cuda.core import LaunchConfig

import cuda_tma

from .planted_hangs import PLANTED, ROWS, WIDTH, Planted

WATCHDOG_MS = 200
COUNTS = 'extern "C" __global__ void count(int* out) { out[threadIdx.x] += threadIdx.x; }'


def main() -> None:
    device = cuda_tma.Device(0)
    device.set_current()
    stream = device.create_stream()
    kept = torch.arange(64, dtype=torch.int32, device="cuda")
    counts = cuda_tma.compile(COUNTS, "count")
    torch.cuda.synchronize()
    for number in map(int, sys.argv[1:]):
        planted = PLANTED[number]
        told = said(planted, stream)
        if planted.ends == "hang":
            before = kept.clone()
            torch.cuda.synchronize()
            cuda_tma.launch(stream, LaunchConfig(grid=1, block=64), counts, kept)
            cuda_tma.synchronize(stream)
            told["launches"] = bool((kept - before).equal(torch.arange(64, dtype=torch.int32, device="cuda")))
        print(json.dumps({"number": number, **told}), flush=True)
        if planted.ends != "hang":
            os._exit(0)  # nothing of it can be waited for


def said(planted: Planted, stream: object) -> dict[str, object]:
    """One hang."""
    memory = torch.zeros((ROWS, WIDTH), dtype=torch.uint8, device="cuda")
    out = torch.zeros(planted.cluster, dtype=torch.int32, device="cuda")
    is_typed = planted.box_rows == ROWS
    given = memory if is_typed else cuda_tma.create_tensor_map(memory, box_dim=(planted.box_rows, WIDTH))
    kernel = cuda_tma.compile(planted.source, "hang", watchdog_ms=WATCHDOG_MS)
    config = LaunchConfig(grid=1, block=64, cluster=planted.cluster)  # the grid is counted in clusters
    torch.cuda.synchronize()
    begun = time.monotonic()
    cuda_tma.launch(stream, config, kernel, given, out)
    try:
        cuda_tma.synchronize(stream)
        text, kind = "", ""
    except Exception as error:
        text, kind = str(error), type(error).__name__
    seconds = time.monotonic() - begun
    written = out.tolist() if planted.ends == "hang" else []
    return {"kind": kind, "text": text, "seconds": seconds, "written": written}


if __name__ == "__main__":
    main()
