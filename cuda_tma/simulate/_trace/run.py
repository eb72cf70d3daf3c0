"""A launch with its timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._observe import Both, Observer
from .._run import run
from ..findings import Report
from ..kernel import Kernel
from .recorder import Recorder
from .tracks import timeline_of

__all__ = ["traced"]


def traced(kernel: Kernel, config: Any, block: Any, memory: Any, settings: Any, observer: Observer | None) -> Report:
    """As :func:`simulate._run.run`; the report has a timeline."""
    recorder = Recorder(kernel.parameters)
    both: Observer = recorder if observer is None else Both(observer, recorder)
    report = run(kernel, config, block, memory, settings, both)
    return replace(report, traced=timeline_of(recorder, kernel))
