"""The class ``cuda_tma.simulate.Device`` below the command.

Both the program and the session receive the reports of the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...simulate._config import Config
from ...simulate._device.device import Device
from ...simulate._kernel import Kernel
from ...simulate._report import Report
from ..launched import Launched, with_report
from ..lines import lines_of

__all__ = ["reporting_device"]

_RUNTIME = "cuda_tma.simulate"


def reporting_device(session: Any) -> type[Device]:
    """Return a class of devices whose launches a session reports.

    The session uses the report of the device, and does not repeat the launch. A launch on a device with
    ``sanitize=False`` has no report.

    Parameters
    ----------
    session : Session
    """

    class ReportingDevice(Device):
        def launch(self, config: Any, kernel: Kernel, *arguments: Any, **keywords: Any) -> Report:
            run = super().launch
            row = [(config, kernel)]
            (report,) = _reported(session, self, row, lambda: (run(config, kernel, *arguments, **keywords),))
            return report

        def _launch_row(self, row: list[Sequence[Any]], *settings: Any) -> tuple[Report, ...]:
            run = super()._launch_row
            return _reported(session, self, [(each[0], each[1]) for each in row], lambda: run(row, *settings))

    ReportingDevice.__name__ = ReportingDevice.__qualname__ = Device.__name__
    return ReportingDevice


def _reported(
    session: Any, device: Device, row: Sequence[tuple[Any, Kernel]], run: Callable[[], tuple[Report, ...]]
) -> tuple[Report, ...]:
    """Run launches, and report each launch that ran to the session."""
    begun = [
        session.begin(kernel.name, Config.of(config), _RUNTIME, is_judged=device.sanitize) for config, kernel in row
    ]
    start = time.perf_counter()
    try:
        reports = run()
    except BaseException as error:
        for launch in begun:
            session.end(launch.with_skipped(f"{type(error).__name__}: {error}"))
        raise
    seconds = (time.perf_counter() - start) / len(row)
    # After an error, the remaining launches do not run.
    for launch, (_, kernel), report in zip(begun, row, reports, strict=False):
        session.end(_judged(session, launch, kernel, report, seconds))
    for launch in begun[len(reports) :]:
        session.end(launch.with_skipped("the launch before it ended with an error"))
    return reports


def _judged(session: Any, launch: Launched, kernel: Kernel, report: Report, seconds: float) -> Launched:
    if not launch.is_judged:
        return replace(launch, seconds=seconds)
    lines = lines_of(kernel.ptx, {}, (), kernel.source, launch.launched_at)
    return with_report(launch, report, seconds, kernel.ptx, lines, session.options.suppressions)
