"""How kernels are timed beside each other, by the GPU's own clock, and in which state the GPU then is.

What only moves data is timed in turns. What keeps the tensor cores busy runs at one clock in its first moments and at
another, which the power that the GPU may draw decides, after that; so there are two figures:

- burst: 8 launches after a pause of a quarter of a second, each kernel by itself;
- sustained: in turns, after half a second of the same work in turns.
"""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

Run = Callable[[], object]

TURNS, WARM_UP_TURNS = 40, 5
PAUSE_S, BURST_LAUNCHES, BURSTS = 0.25, 8, 3
WARM_UP_MS, SUSTAINED_MS, LEAST_TURNS = 500, 1000, 20


def in_turns(runs: Sequence[Run]) -> list[float]:
    """Median milliseconds of each run: in turn, in alternating order."""
    return [statistics.median(times) for times in _queued(runs, WARM_UP_TURNS + TURNS, WARM_UP_TURNS)]


def sustained(runs: Sequence[Run]) -> list[float]:
    """As `in_turns`, for a second of work, after half a second of it that is not counted."""
    once = _queued(runs, 4, 1)
    turn_ms = sum(statistics.median(times) for times in once)
    warm_up, turns = (max(LEAST_TURNS, round(ms / turn_ms)) for ms in (WARM_UP_MS, SUSTAINED_MS))
    return [statistics.median(times) for times in _queued(runs, warm_up + turns, warm_up)]


def burst(runs: Sequence[Run]) -> list[float]:
    """Median milliseconds of the launches after a pause, of some pauses for each run."""
    import torch

    times: list[list[float]] = [[] for _ in runs]
    for number in range(BURSTS):
        for at in range(len(runs))[:: -1 if number % 2 else 1]:
            torch.cuda.synchronize()
            time.sleep(PAUSE_S)
            times[at] += _queued([runs[at]], BURST_LAUNCHES, 0)[0]
    return [statistics.median(some) for some in times]


def _queued(runs: Sequence[Run], turns: int, warm_up: int) -> list[list[float]]:
    """Milliseconds of each run in each turn but the first ones, queued so that the GPU does not wait for Python."""
    import torch

    events = [[[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(turns)] for _ in runs]
    for turn in range(turns):
        for at in range(len(runs))[:: -1 if turn % 2 else 1]:
            begin, end = events[at][turn]
            begin.record()
            runs[at]()
            end.record()
    torch.cuda.synchronize()
    return [[begin.elapsed_time(end) for begin, end in of_run[warm_up:]] for of_run in events]


@dataclass
class Watch:
    """Reads the GPU's clock and power while a block runs, through NVML; nothing where there is no NVML."""

    period_s: float = 0.02
    clocks_mhz: list[int] = field(default_factory=list)
    powers_w: list[float] = field(default_factory=list)

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def clock_mhz(self) -> float:
        """Of the multiprocessors, in the middle; 0 if it was not seen."""
        return statistics.median(self.clocks_mhz or [0])

    @property
    def power_w(self) -> float:
        """The highest; NVML's is itself a mean over some time."""
        return max(self.powers_w or [0.0])

    def _sample(self) -> None:
        nvml, device = _nvml()
        if nvml is None:
            return
        clock, power, multiprocessors = ctypes.c_uint(), ctypes.c_uint(), 1  # NVML_CLOCK_SM
        while not self._over.wait(self.period_s):
            if nvml.nvmlDeviceGetClockInfo(device, multiprocessors, ctypes.byref(clock)) == 0:
                self.clocks_mhz.append(clock.value)
            if nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(power)) == 0:
                self.powers_w.append(power.value / 1000)


def _nvml() -> tuple[ctypes.CDLL | None, ctypes.c_void_p]:
    """The library and its handle of the first GPU."""
    device = ctypes.c_void_p()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, device
    ready = nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    return (nvml if ready else None), device
