"""A pytest plugin that puts the sanitizer in the place of ConSan, for Triton's own tests of ConSan.

A test runs its kernel in another process, and then asserts that ConSan stopped the kernel with a message, or that
ConSan did not stop the kernel. With the plugin, the kernel runs in this process on the simulator, and the assertions
receive the errors of the simulator. A test of a wrong kernel therefore passes if the sanitizer reports an error, and a
test of a right kernel passes if the sanitizer reports no error. A test that starts no process fails if the sanitizer
reports an error. The environment variable ``CONSAN_RESULTS`` contains the name of the file for the results.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import triton._internal_testing

from cuda_tma._intercept.session import Session

REPORTED: list[tuple[str, str]] = []  # The list contains the kind and the sentence of each error of the current test.
ASKED: list[str] = []  # The list contains the messages of ConSan that the current test accepts.
EXPECTED: list[bool] = []  # The list is empty unless ConSan must stop the kernel of the current test.
RESULTS: list[dict[str, Any]] = []
OF_CONSAN = (
    "test_cache_miss",
    "test_consan_",
    "test_mbarrier_arrive_multicast",
)  # Tests in OF_CONSAN are about the implementation of ConSan or about Rubin GPUs.
LAUNCH = Session.launch


def launch(self: Session, *arguments: Any, **options: Any) -> Any:
    report = LAUNCH(self, *arguments, **options)
    REPORTED.extend((each.kind, str(each).partition("\n")[0]) for each in report.errors)
    return report


class Message(str):
    """A replacement for ConSan's message, which contains each expected text if there is an error."""

    def __contains__(self, text: object) -> bool:
        ASKED.append(str(text))
        return bool(REPORTED)

    def __eq__(self, other: object) -> bool:
        return not REPORTED if other == "" else bool(REPORTED)

    __hash__ = str.__hash__


@dataclass
class Result:
    exc: Exception | None
    driver_stderr_output: str = field(default_factory=Message)


def run_in_process(function: Any, arguments: Any = (), *_: Any, **__: Any) -> Result:
    """Run a test's kernel in this process."""
    function = getattr(function, "__wrapped__", function)
    try:
        function(*arguments)
    except Exception as error:  # A kernel with an error may also fail the comparison of its result.
        if not REPORTED:
            return Result(error)
    return Result(RuntimeError("device-side assert") if REPORTED else None)


class Environment(pytest.MonkeyPatch):
    """An environment that never selects ConSan."""

    def setenv(self, name: str, value: str, prepend: str | None = None) -> None:
        if not name.startswith(("TRITON_INSTRUMENTATION", "CUDA_LAUNCH_BLOCKING")):
            super().setenv(name, value, prepend)


@pytest.fixture
def monkeypatch() -> Any:
    patch = Environment()
    yield patch
    patch.undo()


@pytest.fixture
def device() -> str:
    return "cuda"


@pytest.fixture
def process_pool() -> None:
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--warmup-only", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    for name in ("enable_warmup", "disable_warmup"):
        config.addinivalue_line("markers", f"{name}(**options): a mark of Triton")
    Session.launch = launch  # type: ignore[method-assign]
    triton._internal_testing.run_in_process = run_in_process


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [each for each in items if not each.name.startswith(OF_CONSAN)]


def pytest_runtest_setup(item: pytest.Function) -> None:
    for each in (REPORTED, ASKED, EXPECTED):
        each.clear()
    checks = item.module.assert_expected_cuda_failure

    def expected(error: Exception | None) -> None:
        EXPECTED.append(True)
        checks(error)

    if checks.__name__ != "expected":
        item.module.assert_expected_cuda_failure = expected


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    outcome = yield
    report = outcome.get_result()
    if report.when != "call":
        return
    is_wrong = bool(EXPECTED or ASKED)
    if not is_wrong and REPORTED and report.passed:
        report.outcome, report.longrepr = "failed", f"errors of a right kernel: {REPORTED}"
    RESULTS.append(
        {
            "test": item.name,
            "is_wrong": is_wrong,
            "consan": sorted(set(ASKED)),
            "outcome": report.outcome,
            "errors": sorted(set(REPORTED)),
            "reason": "" if report.passed else str(report.longrepr)[-1500:],
            "seconds": round(report.duration, 2),
        }
    )


def pytest_sessionfinish() -> None:
    Path(os.environ["CONSAN_RESULTS"]).write_text(json.dumps(RESULTS, indent=1))
