"""The run of a launch that also records its timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._kernel import Kernel
from .._machine.observer import Both, Observer
from .._machine.run import run
from .._report import Report
from .recorder import Recorder
from .tracks import timeline_of

__all__ = ["traced"]


def traced(kernel: Kernel, config: Any, block: Any, memory: Any, settings: Any, observer: Observer | None) -> Report:
    """Run a launch like :func:`simulate._machine.run.run`, and return the report with a timeline."""
    recorder = Recorder(kernel.parameters)
    both: Observer = recorder if observer is None else Both(observer, recorder)
    report = run(kernel, config, block, memory, settings, both)
    return replace(report, traced=timeline_of(recorder, kernel))
