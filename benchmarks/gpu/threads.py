"""The benchmark rows for launches by several threads at the same time, each on its own stream, which show the cost of
contention."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import cuda_tma

from ..comparison import PAIR_CALLS, Comparison, Timer, Work, compare
from .launch import LAUNCH, PREPARED, Bench
from .scene import Scene

COUNTS = (1, 2, 4, 8)
NOTE = (
    "The table shows the wall-clock time divided by the launches of all threads. Each launch runs an empty kernel "
    "with a map and a pointer. Each thread has its own stream and its own prepared launch, and waits for its stream "
    "after every 200 launches; the time includes the wait. With the GIL, only one thread at a time executes the "
    "Python part of a launch, but several threads execute the driver's part."
)


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    bench = Bench(scene)
    works = [
        Work(f"{name}, {count} thread{'s' * (count > 1)}", partial(by_threads, bench, make, count))
        for name, make in ((LAUNCH, launching), (PREPARED, prepared))
        for count in COUNTS
    ]
    return [compare("Launch: threads", works, repeats, notes=[NOTE])]


def launching(bench: Bench, stream: Any) -> Callable[[], None]:
    launch, config, kernel = cuda_tma.launch, bench.config, bench.kernel("one_map")
    descriptor, address = bench.scene.descriptor(), bench.scene.address
    return lambda: launch(stream, config, kernel, descriptor, address)


def prepared(bench: Bench, stream: Any) -> Callable[[], None]:
    step = cuda_tma.prepare(bench.kernel("one_map"), bench.config, bench.scene.descriptor(), bench.scene.address)
    return lambda: step(stream)


def by_threads(bench: Bench, make: Callable[[Bench, Any], Callable[[], None]], count: int) -> Timer:
    """Return a timer of launches that `count` threads share."""
    device = bench.scene.device
    pool = ThreadPoolExecutor(count, initializer=device.set_current)
    streams = [device.create_stream() for _ in range(count)]
    works = [(make(bench, stream), stream) for stream in streams]

    def run(work: tuple[Callable[[], None], Any], calls: int) -> None:
        launch, stream = work
        for first in range(0, calls, PAIR_CALLS):
            for _ in range(min(PAIR_CALLS, calls - first)):
                launch()
            stream.sync()

    def timer(calls: int) -> float:
        each = -(-calls // count)
        start_ns = time.perf_counter_ns()
        for done in [pool.submit(run, work, each) for work in works]:
            done.result()
        return (time.perf_counter_ns() - start_ns) / (each * count)

    return timer
