"""The regimes in which kernels are timed against each other by the GPU's own clock, and the GPU's state in each regime.

Kernels that only move data are timed in turns. For kernels that keep the tensor cores busy, the GPU reduces its clock
after a short time to stay within its power limit. These kernels have two figures.

Before short kernels, the GPU waits while Python queues the launches. Otherwise the measured time would be the time of
Python.

Regimes
-------
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


@dataclass(frozen=True)
class After:
    """A run that is timed after another run, which is not timed."""

    before: Run
    run: Run

    def __call__(self) -> object:
        return self.run()


TURNS, WARM_UP_TURNS = 40, 5
# The GPU waits for four milliseconds, while Python adds 16 launches or a burst of launches to the queue.
SHORT_MS, BATCH, HOLD_UP_CYCLES = 0.1, 16, 8_000_000
PAUSE_S, BURST_LAUNCHES, BURSTS = 0.25, 8, 2
WARM_UP_MS, SUSTAINED_MS, LEAST_TURNS, MOST_TURNS = 500, 700, 20, 2000


def in_turns(runs: Sequence[Run], turns: int = TURNS) -> list[float]:
    """Return the median milliseconds of each run, in turns of alternating order."""
    times = _queued(runs, WARM_UP_TURNS + turns, WARM_UP_TURNS, is_short=True)
    return [statistics.median(some) for some in times]


def sustained(runs: Sequence[Run]) -> list[float]:
    """Return the times of :func:`in_turns` for 0.7 s of work, after half a second of work that is not timed."""
    once = [statistics.median(times) for times in _queued(runs, 4, 1, is_short=True)]
    warm_up, turns = (min(MOST_TURNS, max(LEAST_TURNS, round(ms / sum(once)))) for ms in (WARM_UP_MS, SUSTAINED_MS))
    times = _queued(runs, warm_up + turns, warm_up, is_short=min(once) < SHORT_MS)
    return [statistics.median(some) for some in times]


def burst(runs: Sequence[Run]) -> list[float]:
    """Return the median milliseconds of the launches after a pause, over several pauses for each run."""
    import torch

    times: list[list[float]] = [[] for _ in runs]
    for number in range(BURSTS):
        for at in range(len(runs))[:: -1 if number % 2 else 1]:
            torch.cuda.synchronize()
            time.sleep(PAUSE_S)
            times[at] += _queued([runs[at]], BURST_LAUNCHES, 0, is_short=True)[0]
    return [statistics.median(some) for some in times]


def _queued(runs: Sequence[Run], turns: int, warm_up: int, is_short: bool) -> list[list[float]]:
    """Return the milliseconds of each run in each turn except the first turns. The launches are queued, so that the GPU
    does not wait for Python.
    """
    import torch

    events = [[[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(turns)] for _ in runs]
    for turn in range(turns):
        if is_short and turn % BATCH == 0:
            torch.cuda._sleep(HOLD_UP_CYCLES)
        for at in range(len(runs))[:: -1 if turn % 2 else 1]:
            begin, end = events[at][turn]
            getattr(runs[at], "before", _nothing)()
            begin.record()
            runs[at]()
            end.record()
    torch.cuda.synchronize()
    return [[begin.elapsed_time(end) for begin, end in of_run[warm_up:]] for of_run in events]


def _nothing() -> None:
    """Do nothing before a run, which is the default."""


@dataclass
class Watch:
    """A reader of the GPU's clock, power and temperature during a block, through NVML.

    Without NVML, the reader returns no values."""

    period_s: float = 0.02
    clocks_mhz: list[int] = field(default_factory=list)
    powers_w: list[float] = field(default_factory=list)
    temperatures_c: list[int] = field(default_factory=list)

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
        """Return the median clock of the multiprocessors, or 0 if it was not observed."""
        return statistics.median(self.clocks_mhz or [0])

    @property
    def power_w(self) -> float:
        """Return the highest power during the block. The value of NVML is itself a mean over some time."""
        return max(self.powers_w or [0.0])

    @property
    def temperature_c(self) -> float:
        """Return the highest temperature during the block."""
        return max(self.temperatures_c or [0])

    def _sample(self) -> None:
        nvml, device = _nvml()
        if nvml is None:
            return
        for_reading = (  # NVML_CLOCK_SM is 1, and NVML_TEMPERATURE_GPU is 0.
            (nvml.nvmlDeviceGetClockInfo, (1,), lambda mhz: self.clocks_mhz.append(mhz)),
            (nvml.nvmlDeviceGetPowerUsage, (), lambda mw: self.powers_w.append(mw / 1000)),
            (nvml.nvmlDeviceGetTemperature, (0,), lambda degrees: self.temperatures_c.append(degrees)),
        )
        value = ctypes.c_uint()
        while not self._over.wait(self.period_s):
            for read, which, keep in for_reading:
                if read(device, *which, ctypes.byref(value)) == 0:
                    keep(value.value)


def _nvml() -> tuple[ctypes.CDLL | None, ctypes.c_void_p]:
    """Return the library NVML and its handle of the first visible GPU."""
    from cuda.core import Device

    device = ctypes.c_void_p()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, device
    bus = Device(0).pci_bus_id.encode()
    ready = nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(device)) == 0
    return (nvml if ready else None), device
