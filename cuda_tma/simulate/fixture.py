"""A pytest plugin with a simulated GPU as a fixture, which fails tests whose kernels have errors.

Add ``pytest_plugins = ["cuda_tma.simulate.fixture"]`` to the outermost ``conftest.py``. An error of a kernel fails the
test, and advice is a warning of pytest. An error in the teardown of another fixture is an error of the test's teardown.
A test also fails if it skips after an error. A mark on a test, class or module changes the settings of the device. The
mark accepts the arguments of :class:`Device`, and ``advice=False`` omits warnings. A suppression may be a text, as on
the command line. An unused suppression is a warning. ``simulated_gpu_suppressions = FILE`` in the configuration of
pytest adds files of suppressions for all tests. The summary of pytest lists the unused suppressions of these files. A
test that expects errors of a kernel removes the reports by ``simulated_gpu.reports.clear()``.

Examples
--------
A test that uses the fixture::

    @pytest.mark.simulated_gpu(strict=True, schedules=4, advice=False, suppressions=["race:scale.cu:7:an estimate"])
    def test_scale(simulated_gpu: Device) -> None:
        kernel = simulated_gpu.compile(Path("scale.cu"), "scale")
        simulated_gpu.launch(Config(1, 32), kernel, given, out)
        assert np.array_equal(out, 2 * given)
"""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

import pytest

from ._device.device import Device
from ._device.refusals import suppressions_of
from ._findings import Finding
from ._report import Report
from ._suppression import Suppression, read_suppressions

__all__ = ["RecordingDevice", "SimulatedGpuWarning", "simulated_gpu"]

_FILES = "simulated_gpu_suppressions"
_SESSION = pytest.StashKey["_Session"]()
_OPEN = pytest.StashKey["_Open"]()
_SECTION = "kernels on the simulated GPU"
_SKIPS = (pytest.skip.Exception, unittest.SkipTest)


class SimulatedGpuWarning(UserWarning):
    """The warning for advice on a kernel, or for an unused suppression."""


class RecordingDevice(Device):
    """A simulated GPU that keeps the report of each launch.

    Attributes
    ----------
    reports : list of Report
        The reports that decide at the end of the test whether it fails. A test may remove reports that should not
        count.
    """

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.reports: list[Report] = []
        self._judged: list[Report] = []

    def _finished(self, reports: Iterable[Report]) -> tuple[Report, ...]:
        finished = super()._finished(reports)
        self.reports += finished
        return finished

    def judged(self) -> list[str]:
        """Return the reasons why reports fail a test; each report counts only in the first call."""
        known = {id(report) for report in self._judged}
        new = [report for report in self.reports if id(report) not in known]
        self._judged += new
        errors = [str(finding) for report in new for finding in report.errors]
        return [*errors, *(report.unfinished for report in new if report.unfinished)]

    def covering(self) -> set[Suppression]:
        """Return the suppressions that applied to at least one finding of this device."""
        hidden = [finding for report in self.reports for finding in report.suppressed]
        return {each for each in self.suppressions if any(each.covers(finding) for finding in hidden)}

    def found(self, severity: str) -> list[Finding]:
        """Return the findings of a given severity of all launches."""
        return [each for report in self.reports for each in report.findings if each.severity == severity]


class _Session:
    """The suppressions for all tests of a session, and the suppressions that applied to a finding."""

    def __init__(self, given: tuple[Suppression, ...]):
        self.given, self.used = given, set[Suppression]()
        self.has_run = False  # The attribute is true after a test has used the fixture.
        self.devices = WeakSet[RecordingDevice]()

    @property
    def unused(self) -> list[Suppression]:
        return [each for each in self.given if each not in self.used] if self.has_run else []


class _Open(NamedTuple):
    """The simulated GPU of a running test, with the suppressions in the marks of the test."""

    gpu: RecordingDevice
    suppressions: list[Suppression]
    has_advice: bool


# ---- the fixture ----


@pytest.fixture
def simulated_gpu(request: pytest.FixtureRequest) -> RecordingDevice:
    """Return a simulated GPU; errors of its launches fail the test."""
    session = _session(request.config)
    settings, own, has_advice = _marked(request.node)
    gpu = RecordingDevice(**settings, suppressions=(*own, *session.given))
    request.node.stash[_OPEN] = _Open(gpu, own, has_advice)
    session.devices.add(gpu)
    return gpu


def _marked(node: pytest.Item) -> tuple[dict[str, Any], list[Suppression], bool]:
    """Return the settings in the marks of a test: arguments of the device, suppressions, and whether to warn.

    The mark that is nearest to the test has priority.
    """
    settings: dict[str, Any] = {}
    suppressions: list[Suppression] = []
    for mark in node.iter_markers("simulated_gpu"):
        given = dict(mark.kwargs)
        if mark.args:
            raise pytest.UsageError(f"the mark simulated_gpu takes only keywords, not {mark.args}")
        suppressions += suppressions_of(given.pop("suppressions", ()))
        settings = {**given, **settings}
    return settings, suppressions, settings.pop("advice", True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose kernels have errors if the test passes, or skips after the launch."""
    try:
        result = yield
    except BaseException as ended:
        if (errors := _new_errors(item)) and isinstance(ended, _SKIPS):
            pytest.fail(f"{errors}\nthe test skips after that: {ended}", pytrace=False)
        if errors:
            item.add_report_section("call", _SECTION, errors)
        raise
    if errors := _new_errors(item):
        pytest.fail(errors, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail the teardown of a test for errors in the teardown of other fixtures.

    The teardown also fails for errors in the setup of a test that did not run.
    """
    try:
        result = yield
    except BaseException:
        if errors := _new_errors(item):
            item.add_report_section("teardown", _SECTION, errors)
        _close(item)
        raise
    errors = _new_errors(item)
    _close(item)
    if errors:
        pytest.fail(errors, pytrace=False)
    return result


def _new_errors(item: pytest.Item) -> str:
    """Return the errors of launches since the last call, on the devices of all tests.

    A fixture of a larger scope may keep the device of an earlier test.
    """
    devices = [*_session(item.config).devices]
    return "\n".join(each for gpu in devices for each in gpu.judged())


def _close(item: pytest.Item) -> None:
    """Issue warnings for advice and for unused suppressions."""
    closed = item.stash.get(_OPEN, None)
    if closed is None:
        return
    del item.stash[_OPEN]
    session = _session(item.config)
    used = closed.gpu.covering()
    session.has_run, session.used = True, session.used | used
    for each in closed.suppressions:
        if each not in used:
            warnings.warn(SimulatedGpuWarning(f"unused suppression: {each}"), stacklevel=1)
    for finding in closed.gpu.found("advice") if closed.has_advice else ():
        warnings.warn(SimulatedGpuWarning(str(finding)), stacklevel=1)


# ---- suppressions for all tests ----


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the entry ``simulated_gpu_suppressions`` to the configuration of pytest."""
    parser.addini(_FILES, "files of suppressions: kind:place:reason, one per line", type="paths")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark ``simulated_gpu``, and read the suppressions for all tests."""
    config.addinivalue_line("markers", "simulated_gpu(**settings): settings of a simulated Device, and advice=False")


def _session(config: pytest.Config) -> _Session:
    if _SESSION not in config.stash:
        try:
            files = config.getini(_FILES)
        except ValueError:  # The option is unknown to pytest if only an inner conftest.py loads the plugin.
            files = []
        config.stash[_SESSION] = _Session(tuple(each for path in files for each in _read(path)))
    return config.stash[_SESSION]


def _read(path: Path) -> tuple[Suppression, ...]:
    try:
        return read_suppressions(path)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{_FILES}: {error}") from None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the used suppressions from a process of pytest-xdist to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        mine = _session(session.config)
        session.config.workeroutput[_FILES] = [
            mine.has_run,
            [mine.given.index(each) for each in mine.used & {*mine.given}],
        ]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive the used suppressions from a process of pytest-xdist."""
    has_run, used = getattr(node, "workeroutput", {}).get(_FILES, (False, ()))
    session = _session(node.config)
    session.has_run |= has_run
    session.used |= {session.given[index] for index in used}


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the suppressions that applied to no finding of any test."""
    if unused := _session(config).unused:
        terminalreporter.section("suppressions of the simulated GPU that these tests did not use")
        for each in unused:
            terminalreporter.line(f"{each.kind}:{each.place}:{each.reason}")
