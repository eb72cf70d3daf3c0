"""A plugin of pytest that writes the executed lines of the package and the failed tests of a session as JSON.

The environment variable ``MUTATION_LINES`` contains the name of the file. The record of executed lines needs
``sys.monitoring`` of Python 3.12. In earlier versions, the list of lines is empty.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

TOOL = 4  # The module sys.monitoring has six tool identifiers, and no other known tool uses 4.
PACKAGE = os.path.join(os.getcwd(), "cuda_tma") + os.sep

executed: defaultdict[str, set[int]] = defaultdict(set)
failed: set[str] = set()
began = time.monotonic()


def _line(code: Any, line: int) -> Any:
    if code.co_filename.startswith(PACKAGE):
        executed[code.co_filename].add(line)
    return sys.monitoring.DISABLE  # Only the first execution of each line is recorded.


if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(TOOL, "mutation")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, _line)
    sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)


def pytest_runtest_logreport(report: Any) -> None:
    """Record a test that fails before any mutation of the package."""
    if report.failed:
        failed.add(report.nodeid)


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Write the executed lines and the failed tests of the session."""
    lines = {os.path.relpath(path): sorted(found) for path, found in executed.items()}
    values = {
        "status": int(exitstatus),
        "tests": session.testscollected,
        "seconds": time.monotonic() - began,
        "failed": sorted(failed),
        "lines": lines,
    }
    Path(os.environ["MUTATION_LINES"]).write_text(json.dumps(values))
