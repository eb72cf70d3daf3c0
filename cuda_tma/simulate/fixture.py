"""For pytest: a simulated GPU, and a test that fails if a kernel that it ran did something wrong.

In the outermost ``conftest.py``: ``pytest_plugins = ["cuda_tma.simulate.fixture"]``; then

    def test_scale(simulated_gpu):
        kernel = simulated_gpu.compile("scale.cu", "scale")
        simulated_gpu.launch(Config(1, 32), kernel, given, out)
        assert np.array_equal(out, 2 * given)

Errors fail the test, advice is a warning of pytest. A test, class or module is marked where it wants it otherwise:

    @pytest.mark.simulated_gpu(strict=True, schedules=4, advice=False, suppressions=["race:scale.cu:7:an estimate"])

takes what :class:`Device` takes; ``advice=False`` leaves warnings out; a suppression may be text, as the command line
has it, and one that covers nothing is a warning. ``simulated_gpu_suppressions = FILE`` in pytest's configuration names
files of suppressions for all tests; at the end it is said which of those covered nothing. A test of a kernel that is
wrong takes its reports away: ``simulated_gpu.reports.clear()``.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .device import Device
from .findings import Finding, Report
from .suppression import Suppression, read_suppressions

__all__ = ["RecordingDevice", "SimulatedGpuWarning", "simulated_gpu"]

_FILES = "simulated_gpu_suppressions"
_SESSION = pytest.StashKey["_Session"]()
_DEVICE = pytest.StashKey["RecordingDevice"]()


class SimulatedGpuWarning(UserWarning):
    """Advice on a kernel; or a suppression that covers nothing."""


class RecordingDevice(Device):
    """A device that keeps the report of each launch.

    Attributes
    ----------
    reports : list of Report
        What the test is judged by at its end: reports that are taken away are not.
    """

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.reports: list[Report] = []

    def _finished(self, reports: Iterable[Report]) -> tuple[Report, ...]:
        finished = super()._finished(reports)
        self.reports += finished
        return finished

    def covering(self) -> set[Suppression]:
        """The suppressions that covered something."""
        hidden = [finding for report in self.reports for finding in report.suppressed]
        return {each for each in self.suppressions if any(each.covers(finding) for finding in hidden)}

    def found(self, severity: str) -> list[Finding]:
        """All that its launches found."""
        return [each for report in self.reports for each in report.findings if each.severity == severity]


class _Session:
    """Suppressions for all tests, and which of them have covered something."""

    def __init__(self, given: tuple[Suppression, ...]):
        self.given, self.used = given, set[Suppression]()
        self.has_run = False  # a test with the fixture

    @property
    def unused(self) -> list[Suppression]:
        return [each for each in self.given if each not in self.used] if self.has_run else []


# ---- the fixture ----


@pytest.fixture
def simulated_gpu(request: pytest.FixtureRequest) -> Iterator[RecordingDevice]:
    """A simulated GPU. What its launches did wrong fails the test."""
    session = _session(request.config)
    settings, own, has_advice = _marked(request.node)
    gpu = RecordingDevice(**settings, suppressions=(*own, *session.given))
    request.node.stash[_DEVICE] = gpu
    yield gpu
    session.has_run = True
    used = gpu.covering()
    session.used |= used
    for each in own:
        if each not in used:
            warnings.warn(SimulatedGpuWarning(f"this suppression covers nothing: {each}"), stacklevel=1)
    for finding in gpu.found("advice") if has_advice else ():
        warnings.warn(SimulatedGpuWarning(str(finding)), stacklevel=1)


def _marked(node: pytest.Item) -> tuple[dict[str, Any], list[Suppression], bool]:
    """What marks say, the nearest first: what the device takes, suppressions of all of them, whether advice is said."""
    settings: dict[str, Any] = {}
    suppressions: list[Suppression] = []
    for mark in node.iter_markers("simulated_gpu"):
        given = dict(mark.kwargs)
        if mark.args:
            raise pytest.UsageError(f"the mark simulated_gpu takes keywords, and was given {mark.args}")
        for each in given.pop("suppressions", ()):
            suppressions.append(Suppression.parse(each) if isinstance(each, str) else each)
        settings = {**given, **settings}
    return settings, suppressions, settings.pop("advice", True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test that is right by its own word fails if its kernels are not; if it fails, they may be why."""
    try:
        result = yield
    except BaseException:
        if errors := _errors(item):
            item.add_report_section("call", "kernels on the simulated GPU", errors)
        raise
    if errors := _errors(item):
        pytest.fail(errors, pytrace=False)
    return result


def _errors(item: pytest.Item) -> str:
    gpu = item.stash.get(_DEVICE, None)
    if gpu is None:
        return ""
    unfinished = [report.unfinished for report in gpu.reports if report.unfinished]
    return "\n".join([*map(str, gpu.found("error")), *unfinished])


# ---- suppressions for all tests ----


def pytest_addoption(parser: pytest.Parser) -> None:
    """One entry of pytest's configuration."""
    parser.addini(_FILES, "files of findings that are not reported: kind:place:reason, a line each", type="paths")


def pytest_configure(config: pytest.Config) -> None:
    """The mark is known."""
    config.addinivalue_line("markers", "simulated_gpu(**settings): of cuda_tma's simulated Device, and advice=False")


def _session(config: pytest.Config) -> _Session:
    if _SESSION not in config.stash:
        try:
            files = config.getini(_FILES)
        except ValueError:  # named by a conftest.py that is not the outermost: pytest asks for no options then
            files = []
        config.stash[_SESSION] = _Session(tuple(each for path in files for each in _read(path)))
    return config.stash[_SESSION]


def _read(path: Path) -> tuple[Suppression, ...]:
    try:
        return read_suppressions(path)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{_FILES}: {error}") from None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist tells the one that started it."""
    if hasattr(session.config, "workeroutput"):
        mine = _session(session.config)
        session.config.workeroutput[_FILES] = [
            mine.has_run,
            [mine.given.index(each) for each in mine.used & {*mine.given}],
        ]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """... which gathers that."""
    has_run, used = getattr(node, "workeroutput", {}).get(_FILES, (False, ()))
    session = _session(node.config)
    session.has_run |= has_run
    session.used |= {session.given[index] for index in used}


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Suppressions that no launch of any test needed."""
    if unused := _session(config).unused:
        terminalreporter.section("suppressions of the simulated GPU that cover nothing in these tests")
        for each in unused:
            terminalreporter.line(f"{each.kind}:{each.place}:{each.reason}")
