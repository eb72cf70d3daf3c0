"""``python -m tests.gpu.hang_child CASE ...``: a process that runs kernels which hang, one after the other.

A case is the number of a planted hang, or the name of a function below. The output has a line of JSON for each case:
the report and its time, and whether the process can launch again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import torch
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

from .planted_hangs import PLANTED, ROWS, WIDTH, Planted

WATCHDOG_MS = 200
COUNTS = 'extern "C" __global__ void count(int* out) { out[threadIdx.x] += threadIdx.x; }'
SHORT, RING = PLANTED[0], PLANTED[9]


class Case:
    """A planted kernel with the arguments of its launch."""

    def __init__(self, planted: Planted, **options: object):
        memory = torch.zeros((ROWS, WIDTH), dtype=torch.uint8, device="cuda")
        self.out = torch.zeros(planted.cluster, dtype=torch.int32, device="cuda")
        is_typed = planted.box_rows == ROWS
        self.given = memory if is_typed else cuda_tma.create_tensor_map(memory, box_dim=(planted.box_rows, WIDTH))
        self.kernel = cuda_tma.compile(planted.source, "hang", watchdog_ms=WATCHDOG_MS, **options)
        # The field grid counts clusters.
        self.config = LaunchConfig(grid=1, block=64, cluster=planted.cluster)
        torch.cuda.synchronize()

    def launch(self, stream: object) -> None:
        cuda_tma.launch(stream, self.config, self.kernel, self.given, self.out)


def said(wait: Callable[[], object]) -> dict[str, object]:
    """Return the error text of a wait for the GPU, and the duration of the wait."""
    begun = time.monotonic()
    try:
        wait()
        text, kind = "", ""
    except Exception as error:
        text, kind = str(error), type(error).__name__
    return {"kind": kind, "text": text, "seconds": time.monotonic() - begun}


def planted_hang(number: int, stream: object) -> dict[str, object]:
    """Run one kernel of the table of planted hangs."""
    case = Case(PLANTED[number])
    case.launch(stream)
    told = said(lambda: cuda_tma.synchronize(stream))
    return told | {"written": case.out.tolist() if PLANTED[number].ends == "hang" else []}


def by_torch(stream: object) -> dict[str, object]:
    """Wait for a hanging kernel with torch, which raises no report, and then with cuda_tma.synchronize, which raises
    the report."""
    case = Case(SHORT)
    case.launch(stream)
    waited = said(torch.cuda.synchronize)
    return said(lambda: cuda_tma.synchronize(stream)) | {"before": waited, "written": case.out.tolist()}


def in_a_graph(stream: object) -> dict[str, object]:
    """Launch a CUDA graph with a hanging kernel twice, and return two reports."""
    case = Case(SHORT)
    builder = cuda_tma.Device(0).create_graph_builder().begin_building()
    case.launch(builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    first = said(lambda: cuda_tma.synchronize(stream))
    graph.launch(stream)
    return said(lambda: cuda_tma.synchronize(stream)) | {"before": first, "written": case.out.tolist()}


def two_at_once(stream: object) -> dict[str, object]:
    """Run two kernels that hang and one kernel that ends, each on its own stream."""
    cases, other, third = [Case(SHORT), Case(RING)], *(cuda_tma.Device(0).create_stream() for _ in range(2))
    counts, kept = cuda_tma.compile(COUNTS, "count"), torch.zeros(64, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    for case, on in zip(cases, (stream, other), strict=True):
        case.launch(on)
    cuda_tma.launch(third, LaunchConfig(grid=1, block=64), counts, kept)
    first, second = (said(lambda on=on: cuda_tma.synchronize(on)) for on in (stream, other))
    third.sync()
    return second | {"before": first, "written": kept.tolist()}


def one_kernel_twice(stream: object) -> dict[str, object]:
    """Run two launches of one hanging kernel at the same time, and return a report for each launch."""
    case, other = Case(SHORT), cuda_tma.Device(0).create_stream()
    case.launch(stream)
    case.launch(other)
    first, second = (said(lambda on=on: cuda_tma.synchronize(on)) for on in (stream, other))
    return second | {"before": first, "written": case.out.tolist()}


def built_elsewhere(stream: object) -> dict[str, object]:
    """Build a hanging kernel with cuda.core's Program, and pass the address for the watchdog's reports to the
    kernel."""
    device = cuda_tma.Device(0)
    options = ProgramOptions(
        std="c++17",
        arch=f"sm_{device.arch}a",
        include_path=cuda_tma.include_path(),
        define_macro=("CUDA_TMA_WATCHDOG_MS", str(WATCHDOG_MS)),
    )
    kernel = Program(SHORT.source, "c++", options).compile("cubin").get_kernel("hang")
    cuda_tma.arm_watchdog(kernel)
    case = Case(SHORT)
    map = cuda_tma.create_tensor_map(case.given, box_dim=(ROWS, WIDTH))
    cuda_tma.launch(stream, case.config, kernel, map, case.out)
    return said(lambda: cuda_tma.synchronize(stream)) | {"written": case.out.tolist()}


def trapped(stream: object) -> dict[str, object]:
    """Execute a trap, which destroys the context but not the report."""
    case = Case(SHORT, defines={"CUDA_TMA_WATCHDOG_TRAP": None})
    case.launch(stream)
    return said(lambda: cuda_tma.synchronize(stream))


NAMED = (by_torch, in_a_graph, two_at_once, one_kernel_twice, built_elsewhere, trapped)


def main() -> None:
    device = cuda_tma.Device(0)
    device.set_current()
    stream = device.create_stream()
    kept = torch.arange(64, dtype=torch.int32, device="cuda")
    counts = cuda_tma.compile(COUNTS, "count")
    named = {function.__name__: function for function in NAMED}
    for case in sys.argv[1:]:
        told = planted_hang(int(case), stream) if case.isdigit() else named[case](stream)
        lives = case != "trapped" if not case.isdigit() else PLANTED[int(case)].ends == "hang"
        if lives:
            before = kept.clone()
            torch.cuda.synchronize()
            cuda_tma.launch(stream, LaunchConfig(grid=1, block=64), counts, kept)
            cuda_tma.synchronize(stream)
            told["launches"] = bool((kept - before).equal(torch.arange(64, dtype=torch.int32, device="cuda")))
        print(json.dumps({"case": case, **told}), flush=True)
        if not lives:
            # The process exits at once, because no call can free the objects of a lost context.
            os._exit(0)


if __name__ == "__main__":
    main()
