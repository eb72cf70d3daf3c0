"""The plugin ``pytest --cuda-tma``, which fails a test if the kernels that it launches have errors."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .._compute_capability import parse_compute_capability
from .._intercept import adapters
from .._intercept.launched import Launched
from .._intercept.launched_values import launched_of, values_of_launched
from .._intercept.options import Options
from .._intercept.session import Sink, begin, current
from .._intercept.startup.cuda_tma_startup import RUNTIMES, after_import
from ..simulate import KINDS, Finding
from .exit_status import Misuse
from .judgement import SCHEDULES, suppressions_of
from .outcome import Outcome, coverage, exit_status, unused
from .program import sources_of
from .reports import check_outputs, write_outputs

__all__ = ["Suite"]

_OUTPUT = "cuda_tma"  # A worker process of pytest-xdist sends its launches under the key "cuda_tma".
_SECTION = "kernels on the simulated GPU"


class Suite:
    """The plugin of pytest, which receives the launches of this process, and checks each phase of a test.

    Parameters
    ----------
    options : namespace
        The options of pytest.

    Raises
    ------
    pytest.UsageError
        If an option is wrong.
    """

    def __init__(self, options: Any):
        self._requires = bool(options.cuda_tma_require_judged)
        self._launches: list[Launched] = []
        self._notes: dict[str, None] = {}
        self._begun = time.perf_counter()
        # Each key is a kind of error that the running test must cause, and its value is true after the error occurs.
        self._expected: dict[str, bool] = {}
        try:
            self._options, self._arguments = _options(options)
            check_outputs(self._arguments)
            self._begin()
        except (Misuse, TypeError, ValueError) as error:
            raise pytest.UsageError(f"--cuda-tma: {error}") from None

    def _begin(self) -> None:
        """Begin a session, or use the session of ``cuda-tma sanitize`` that runs the suite."""
        known = current()
        if known is None:
            begin(self._options, self)
            after_import(RUNTIMES, adapters.loaded)
        else:
            known.sink = _Both(known.sink, self)

    # ---- the session ----

    def begun(self, launch: Launched) -> None:
        """Receive a launch before it runs."""

    def ended(self, launch: Launched) -> None:
        """Store the report of a launch."""
        self._launches.append(launch)

    def noted(self, text: str) -> None:
        """Store a note of the session."""
        self._notes[text] = None

    # ---- tests ----

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Read the marks of a test before the test begins."""
        self._expected = dict.fromkeys(_expected(item), False)
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the launches of fixtures before the test."""
        with self._judging(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the launches of the test itself, and the errors that its marks expect."""
        with self._judging(item, "call"):
            result = yield
        if missing := [kind for kind, is_found in self._expected.items() if not is_found]:
            pytest.fail(f"no kernel of this test has the expected error: {', '.join(missing)}", pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the launches of the teardown of fixtures."""
        with self._judging(item, "teardown"):
            return (yield)

    @contextmanager
    def _judging(self, item: pytest.Item, phase: str) -> Iterator[None]:
        """Fail a phase that passed although its kernels have errors.

        If the phase failed, add the errors of its kernels as possible reasons.
        """
        before = len(self._launches)
        try:
            yield
        except BaseException:
            if text := self._failure(self._launches[before:]):
                item.add_report_section(phase, _SECTION, text)
            raise
        if text := self._failure(self._launches[before:]):
            pytest.fail(text, pytrace=False)

    def _failure(self, launches: Iterable[Launched]) -> str:
        lines = []
        for launch in launches:
            for finding in launch.report.errors if launch.report is not None else ():
                if finding.kind in self._expected:
                    self._expected[finding.kind] = True
                else:
                    lines.append(_described(launch, finding))
            if launch.skipped and self._requires:
                lines.append(f"{launch.kernel} was not judged: {launch.skipped}")
        return "\n".join(dict.fromkeys(lines))

    # ---- the end ----

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the launches of a process of pytest-xdist to the process that started it."""
        if hasattr(session.config, "workeroutput"):
            launches = [{**values_of_launched(each), "sources": dict(each.sources)} for each in self._launches]
            session.config.workeroutput[_OUTPUT] = json.dumps([launches, [*self._notes]])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the launches of a process of pytest-xdist to this session."""
        launches, notes = json.loads(getattr(node, "workeroutput", {}).get(_OUTPUT, "[[], []]"))
        for values in launches:
            texts = {text: text for text in values["sources"].values()}
            self._launches.append(launched_of(values, texts))
        self._notes.update(dict.fromkeys(notes))

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Write the reports, and the line that counts the launches."""
        seconds = time.perf_counter() - self._begun
        notes, suppressions = tuple(self._notes), self._options.suppressions
        outcome = Outcome(tuple(self._launches), int(exitstatus), suppressions, notes, seconds=seconds)
        terminalreporter.section("cuda-tma")
        try:
            write_outputs(self._arguments, outcome, exit_status(outcome), sources_of)
        except Misuse as error:
            terminalreporter.line(str(error))
        for each in unused(outcome):
            terminalreporter.line(f"unused suppression: {each.kind}:{each.place}:{each.reason}")
        for note in notes:
            terminalreporter.line(f"note: {note}")
        terminalreporter.line(coverage(outcome))


class _Both:
    """A pair of receivers of the same events."""

    def __init__(self, first: Sink, second: Sink):
        self._sinks = first, second

    def begun(self, launch: Launched) -> None:
        """Pass the start of a launch to both receivers."""
        for sink in self._sinks:
            sink.begun(launch)

    def ended(self, launch: Launched) -> None:
        """Pass the end of a launch to both receivers."""
        for sink in self._sinks:
            sink.ended(launch)

    def noted(self, text: str) -> None:
        """Pass a note to both receivers."""
        for sink in self._sinks:
            sink.noted(text)


def _options(given: Any) -> tuple[Options, argparse.Namespace]:
    """Return the settings of the session, and the outputs in the form of ``cuda-tma sanitize``."""
    files = [given.cuda_tma_suppressions] if given.cuda_tma_suppressions else []
    arguments = argparse.Namespace(
        suppress=[], suppressions=files, file=None, require_judged=False, record=None, baseline=None
    )
    arguments.json, arguments.sarif, arguments.html = given.cuda_tma_json, given.cuda_tma_sarif, given.cuda_tma_html
    options = Options(
        compute_capability=parse_compute_capability(given.cuda_tma_compute_capability or "9.0"),
        schedules=int(given.cuda_tma_schedules or SCHEDULES),
        strict=bool(given.cuda_tma_strict),
        suppressions=suppressions_of(arguments),
        records="findings" if arguments.html else "",
    )
    return options, arguments


def _expected(item: pytest.Item) -> Iterator[str]:
    """Yield the kinds of errors that the marks of a test name."""
    for mark in item.iter_markers("cuda_tma"):
        kinds = mark.kwargs.get("expected", ())
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            if kind not in KINDS:
                raise pytest.UsageError(
                    f"cuda_tma(expected={kind!r}) names an unknown kind; use one of {', '.join(KINDS)}"
                )
            yield kind


def _described(launch: Launched, finding: Finding) -> str:
    at = launch.launched_at
    return f"{finding}\n  kernel: {launch.kernel}" + (f", launched by {at.file}:{at.line}" if at is not None else "")
