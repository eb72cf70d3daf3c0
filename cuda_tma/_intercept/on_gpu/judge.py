"""The check of the captured launches of one program. Each launch runs on its own simulated GPU."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...simulate._errors import ParseError, TimeLimitReached, UnsupportedInstruction
from ..launched import Launched, with_report
from ..launches import compared_replay
from ..lines import Lines
from ..options import Options
from .capture_file import read_capture, read_outcome
from .kernels import GpuKernel
from .messages import Gpu
from .recording import RUNTIME, launched_at, recorded_launch

__all__ = ["CAPTURES", "Judge"]

CAPTURES = "captures"  # The name of the folder with captured memory is the same in library/captures.c.
_WRONG = (ParseError, TimeLimitReached, UnsupportedInstruction, TypeError, ValueError, OverflowError)


class Judge:
    """A checker of captured launches, which reports the launches to a sink.

    Parameters
    ----------
    options : Options
    sink : Sink
    gpu : Gpu
    """

    def __init__(self, options: Options, sink: Any, gpu: Gpu):
        self._options, self._sink, self._gpu = options, sink, gpu
        self._pattern = re.compile(options.kernel)
        self._number = self._matched = 0

    def wants(self, kernel: GpuKernel) -> bool:
        """Return whether the filters of the command include the launches of a kernel."""
        return self._pattern.search(kernel.name) is not None

    def is_complete(self) -> bool:
        """Return whether the command has checked its last launch."""
        count = self._options.launch_count
        return count is not None and self._matched - self._options.launch_skip >= count

    def skip(self, kernel: GpuKernel) -> None:
        """Report a kernel whose launches are not checked."""
        self._sink.ended(Launched(self._next(), kernel.name, RUNTIME, skipped=kernel.reason))

    def judge(self, kernel: GpuKernel, before: Path, after: Path | None) -> None:
        """Check a captured launch, and remove its files."""
        is_chosen = self._matched >= self._options.launch_skip and not self.is_complete()
        self._matched += 1
        try:
            if is_chosen and not kernel.reason:
                self._judge(kernel, before, after)
        finally:
            before.unlink(missing_ok=True)
            if after is not None:
                after.unlink(missing_ok=True)

    def _judge(self, kernel: GpuKernel, before: Path, after: Path | None) -> None:
        begun, known = time.perf_counter(), Launched(self._next(), kernel.name, RUNTIME)
        try:
            capture = read_capture(before)
            known = replace(known, config=capture.config, launched_at=launched_at(capture))
            self._sink.begun(known)
            recorded = recorded_launch(capture, kernel, self._gpu, read_outcome(after) if after is not None else None)
            report, comparison = compared_replay(recorded, seed=self._options.seed, **self._settings())
        except (OSError, *_WRONG) as error:
            if isinstance(error, (ParseError, UnsupportedInstruction)):
                kernel.reason = f"{type(error).__name__}: {error}"
            self._sink.ended(known.with_skipped(f"{type(error).__name__}: {error}"))
            return
        lines = Lines(recorded.sources, recorded.generated, recorded.embedded)
        seconds = time.perf_counter() - begun
        ended = with_report(known, report, seconds, recorded.ptx, lines, self._options.suppressions)
        is_kept = self._options.records == "all" or (self._options.records and report.findings)
        text = "not compared: the launch on the GPU has not ended" if comparison is None else str(comparison)
        self._sink.ended(replace(ended, hardware=text, recorded=(lambda: recorded) if is_kept else None))

    def _settings(self) -> dict[str, Any]:
        options = self._options
        return {"schedules": options.schedules, "strict": options.strict, "time_limit": options.time_limit}

    def _next(self) -> int:
        self._number += 1
        return self._number - 1
