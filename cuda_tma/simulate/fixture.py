"""A fixture for pytest: a simulated GPU, and a test that fails if a kernel that it ran did something wrong.

In a ``conftest.py``: ``pytest_plugins = ["cuda_tma.simulate.fixture"]``; then

    def test_scale(simulated_gpu):
        kernel = simulated_gpu.compile("scale.cu", "scale")
        simulated_gpu.launch(Config(1, 32), kernel, given, out)
        assert np.array_equal(out, 2 * given)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .device import Device
from .findings import Report

__all__ = ["RecordingDevice", "simulated_gpu"]


class RecordingDevice(Device):
    """A device that keeps the report of each launch.

    Attributes
    ----------
    reports : list of Report
    """

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.reports: list[Report] = []

    def launch(self, *arguments: Any, **settings: Any) -> Report:
        """As :meth:`Device.launch`."""
        report = super().launch(*arguments, **settings)
        self.reports.append(report)
        return report


def _gpu_without_errors() -> Iterator[RecordingDevice]:
    """A simulated GPU; at its end, all errors of its launches."""
    gpu = RecordingDevice()
    yield gpu
    errors = [str(finding) for report in gpu.reports for finding in report.errors]
    if errors:
        pytest.fail("\n".join(errors), pytrace=False)


simulated_gpu = pytest.fixture(_gpu_without_errors, name="simulated_gpu")
