"""The session of a process, which runs and checks every intercepted launch on one simulated GPU."""

from __future__ import annotations

import copy
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Protocol

from ..simulate._config import Config
from ..simulate._device.device import Device
from ..simulate._findings import Finding
from ..simulate._kernel import Kernel
from ..simulate._machine.progress import progress_of_run
from ..simulate._ptx import Place
from ..simulate._report import Report, suppressed
from .journal import Journal
from .launched import Launched, launching_place, with_report
from .launches import MemoryTooLarge, RecordedLaunch, captured
from .lines import Lines, lines_of
from .options import Options, read_options
from .startup.cuda_tma_startup import VARIABLE

__all__ = ["Session", "Sink", "begin", "current"]

_MOST_ALIKE = 1000  # The first _MOST_ALIKE launches of a kernel with one configuration run under all schedules.
# A finding about the whole program has the text "the program" in place of a kernel's name.
_PROGRAM = "the program"


class Sink(Protocol):
    """A receiver of the events of a session."""

    def begun(self, launch: Launched) -> None:
        """Receive a launch before it runs."""

    def ended(self, launch: Launched) -> None:
        """Receive a launch with its report, or with the reason why the report is missing."""

    def noted(self, text: str) -> None:
        """Receive a note that is for the user."""


class Session:
    """A session that runs and checks the launches of this process.

    Parameters
    ----------
    options : Options
    sink : Sink

    Attributes
    ----------
    device : Device
        The simulated GPU of the session. Adapters use its addresses and tensor maps, but call the session for launches.
    """

    def __init__(self, options: Options, sink: Sink):
        self.options, self.sink = options, sink
        self.device = Device(
            options.compute_capability,
            schedules=options.schedules,
            strict=options.strict,
            time_limit=options.time_limit,
        )
        # A shallow copy of the device shares the memory of the original device.
        self._unjudged = copy.copy(self.device)
        self._unjudged.sanitize, self._unjudged.schedules = False, 1
        self._repeated = copy.copy(self.device)
        self._repeated.schedules = 1
        # The counter contains the number of checked launches of each kernel and configuration.
        self._counts = Counter[str]()
        self._kernels: dict[tuple[str, str], Kernel] = {}
        self._pattern = re.compile(options.kernel)
        self._matched = self._number = 0
        self._begun = time.monotonic()
        self._lock = RLock()

    def launch(
        self,
        kernel_name: str,
        ptx: str,
        entry: str,
        config: Config,
        arguments: Sequence[Any],
        *,
        runtime: str,
        sources: Mapping[str, str] = MappingProxyType({}),
        generated: Collection[str] = (),
        kernel: Kernel | None = None,
    ) -> Report:
        """Run a launch to its end, and check the launch unless a filter excludes it.

        The memory after the launch is the same with and without the check.

        Parameters
        ----------
        kernel_name : str
            The name that the runtime uses for the kernel.
        ptx, entry : str
            The PTX text, and the name of the kernel in the text. The session loads each kernel once for each text.
        config : Config
        arguments : sequence
            The arguments of :meth:`Device.launch`, which are arrays, CPU tensors, tensor maps, numbers, addresses and
            bytes.
        runtime : str
            The name of the runtime, such as ``"triton"``.
        sources : mapping of str to str
            The texts of files that the PTX refers to and that may not exist on disk.
        generated : collection of str
            The names of the files that a compiler generated. A finding shows the lines of these files after the user's
            lines.
        kernel : Kernel, optional
            The kernel of a module whose variables already have addresses. Without a kernel, the session loads the PTX.

        Returns
        -------
        Report
            The report, which is without findings if the launch was not checked.

        Raises
        ------
        UnsupportedInstruction, ParseError, TypeError, ValueError
            If the launch cannot run. The session then records the launch as skipped.
        """
        with self._lock:
            known = self.begin(kernel_name, config, runtime, is_judged=True)
            is_judged, place, begun = known.is_judged, known.launched_at, time.perf_counter()
            try:
                kernel = self._kernel(ptx, entry) if kernel is None else kernel
                lines = lines_of(ptx, sources, generated, kernel.source, place) if is_judged else Lines()
                recorded = self._recorded(known, kernel, arguments, lines)
                device = self._device_of(kernel_name, config) if is_judged else self._unjudged
                with progress_of_run(f"launch {self._number}, {kernel_name}", self._begun):
                    report = device.launch(config, kernel, *arguments, seed=self.options.seed)
            except BaseException as error:
                self._end(known, begun, skipped=f"{type(error).__name__}: {error}")
                raise
            if is_judged:
                seconds = time.perf_counter() - begun
                ended = with_report(known, report, seconds, ptx, lines, self.options.suppressions)
                report = ended.report or report
                is_kept = self.options.records == "all" or report.findings
                self.sink.ended(replace(ended, recorded=recorded if is_kept else None))
            else:
                self._end(known, begun)
        if report.output and sys.stdout is not None:
            sys.stdout.write(report.output)
        return report

    def _recorded(
        self,
        launch: Launched,
        kernel: Kernel,
        arguments: Sequence[Any],
        lines: Lines,
    ) -> Callable[[], RecordedLaunch] | None:
        """Record a checked launch before the launch runs, if the session records launches."""
        if not self.options.records or not launch.is_judged or launch.config is None:
            return None
        known: dict[str, Any] = {"kernel": launch.kernel, "runtime": launch.runtime, "launched_at": launch.launched_at}
        known |= {"sources": lines.sources, "generated": lines.generated, "embedded": lines.embedded}
        try:
            recorded = captured(self.device, launch.config, kernel, arguments, **known)
        except MemoryTooLarge as error:
            self.note(f"a launch of {launch.kernel} is not recorded: {error}")
            return None
        return lambda: recorded

    def keep(self, kernel: Kernel) -> None:
        """Store a kernel, so that later launches of its PTX use the parameter types from the kernel's C++."""
        self._kernels[kernel.ptx, kernel.name] = kernel

    def begin(self, kernel_name: str, config: Config, runtime: str, *, is_judged: bool) -> Launched:
        """Report a launch that is about to run on another device. The method :meth:`end` reports the end of the
        launch."""
        with self._lock:
            is_judged = self._matches(kernel_name) and is_judged
            place = launching_place()
            launch = Launched(self._next(), kernel_name, runtime, config, is_judged=is_judged, launched_at=place)
            self.sink.begun(launch)
            return launch

    def end(self, launch: Launched) -> None:
        """Report the end of a launch that :meth:`begin` reported."""
        with self._lock:
            self.sink.ended(launch)

    def skip(self, kernel_name: str, reason: str, runtime: str = "") -> None:
        """Report a launch that an adapter cannot run or check."""
        with self._lock:
            self.sink.ended(Launched(self._next(), kernel_name, runtime, skipped=reason, launched_at=launching_place()))

    def found(self, finding_at: Callable[[Place | None], Finding], runtime: str) -> None:
        """Report an error of the program outside its launches.

        The given function returns the finding for the present statement of the program.
        """
        place = launching_place()
        with self._lock:
            report = suppressed(Report((finding_at(place),)), self.options.suppressions)
            self.sink.ended(Launched(self._next(), _PROGRAM, runtime, report=report, launched_at=place))

    def note(self, text: str) -> None:
        """Report a note for the user. Report each text only once."""
        self.sink.noted(text)

    def acquire(self) -> None:
        """Wait for the end of the running launch, so that the process does not fork during a launch."""
        self._lock.acquire()

    def release(self) -> None:
        """Allow launches again after :meth:`acquire`."""
        self._lock.release()

    def _next(self) -> int:
        self._number += 1
        return self._number - 1

    def _matches(self, kernel_name: str) -> bool:
        if not self._pattern.search(kernel_name):
            return False
        before, self._matched = self._matched - self.options.launch_skip, self._matched + 1
        count = self.options.launch_count
        return before >= 0 and (count is None or before < count)

    def _device_of(self, kernel_name: str, config: Config) -> Device:
        """Return the device that checks a launch. The device limits the schedules, so that a program with many launches
        ends in bounded time.
        """
        key = f"{kernel_name} {config}"
        self._counts[key] += 1
        if self._counts[key] <= _MOST_ALIKE or self.options.schedules == 1:
            return self.device
        self.note(
            f"{kernel_name} is launched more than {_MOST_ALIKE:,} times with one configuration: its further launches "
            "are judged under 1 schedule"
        )
        return self._repeated

    def _kernel(self, ptx: str, entry: str) -> Kernel:
        kernel = self._kernels.get((ptx, entry))
        if kernel is None:
            kernel = self._kernels[ptx, entry] = self.device.load(ptx, entry)
        return kernel

    def _end(self, launch: Launched, begun: float, **outcome: Any) -> None:
        self.sink.ended(replace(launch, seconds=time.perf_counter() - begun, **outcome))


_sessions: list[Session] = []


def begin(options: Options, sink: Sink) -> Session:
    """Begin the session of this process."""
    _sessions[:] = [Session(options, sink)]
    return _sessions[0]


def current() -> Session | None:
    """Return the session of this process, which began in this process, or in the command that started this process."""
    folder = os.environ.get(VARIABLE)
    if not _sessions and folder:
        begin(read_options(Path(folder)), Journal(Path(folder)))
    return _sessions[0] if _sessions else None


def _at_fork(step: str) -> None:
    if _sessions:
        getattr(_sessions[0], step)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _at_fork("acquire"),
        after_in_parent=lambda: _at_fork("release"),
        after_in_child=lambda: _at_fork("release"),
    )
