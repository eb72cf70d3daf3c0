"""A plugin of pytest that writes the package's lines that each test executes, as JSON, and limits the time of a test.

The environment variable ``MUTATION_LINES`` contains the name of the file. The record of executed lines needs
``sys.monitoring`` of Python 3.12. In earlier versions, the masks of lines are empty. The environment variable
``MUTATION_SECONDS`` limits the processor time of one test. A test that exceeds this limit ends the process by a signal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

TOOL = 4  # The module sys.monitoring has six tool identifiers, and no other known tool uses 4.
PACKAGE = os.path.join(os.getcwd(), "cuda_tma") + os.sep
SECONDS, FILE = float(os.environ.get("MUTATION_SECONDS", "0")), os.environ.get("MUTATION_LINES", "")

executed: defaultdict[str, set[int]] = defaultdict(set)
tests: dict[str, tuple[float, dict[str, str]]] = {}
taken: defaultdict[str, float] = defaultdict(float)
failed: set[str] = set()


def _line(code: Any, line: int) -> Any:
    if code.co_filename.startswith(PACKAGE):
        executed[code.co_filename].add(line)
    return sys.monitoring.DISABLE  # Only the first execution of each line in a test is recorded.


if FILE and hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(TOOL, "mutation")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, _line)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin to record the time and the lines of a test."""
    if SECONDS:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    executed.clear()
    if FILE and hasattr(sys, "monitoring"):
        sys.monitoring.restart_events()


def pytest_runtest_logreport(report: Any) -> None:
    """Record the time of a test, and whether the test fails before any mutation of the package."""
    taken[report.nodeid] += report.duration
    if report.failed:
        failed.add(report.nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Record the lines of a test, as a mask with a bit for each line."""
    masks = {os.path.relpath(path): f"{sum(1 << line for line in found):x}" for path, found in executed.items()}
    tests[nodeid] = round(taken[nodeid], 3), masks


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Write the tests of each file, with their executed lines, and the failed tests."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    if FILE and hasattr(sys, "monitoring"):
        sys.monitoring.set_events(TOOL, 0)
    files: dict[str, dict[str, Any]] = {}
    for nodeid, values in tests.items():
        file = files.setdefault(nodeid.partition("::")[0], {"failed": [], "tests": {}})
        file["tests"][nodeid] = values
        if nodeid in failed:
            file["failed"].append(nodeid)
    if FILE:
        Path(FILE).write_text(json.dumps(files))
