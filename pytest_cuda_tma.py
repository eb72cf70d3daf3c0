"""The pytest plugin of cuda_tma: ``pytest --cuda-tma`` judges every launch of a suite on a simulated GPU.

pytest loads this module in every run. The module defines only the options, and imports cuda_tma only for
``--cuda-tma``.
"""

from __future__ import annotations

from typing import Any

import pytest

_NAME = "cuda-tma-suite"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, named like those of ``cuda-tma sanitize``."""
    group = parser.getgroup("cuda-tma", "kernels on a simulated GPU")
    group.addoption("--cuda-tma", action="store_true", help="judge every launch; fail a test whose kernel has an error")
    for name, metavar, text in (
        ("compute-capability", "9.0", "compute capability of the simulated GPU (default: 9.0)"),
        ("schedules", "N", "number of orders under which each launch runs (default: 4)"),
        ("suppressions", "FILE", "suppress findings: kind:place:reason, one per line"),
        ("json", "FILE", "write the launches and findings as JSON"),
        ("sarif", "FILE", "write the findings as SARIF 2.1.0"),
        ("html", "FILE", "write one page with launches, findings, their lines and their timelines"),
    ):
        group.addoption(f"--cuda-tma-{name}", metavar=metavar, help=text)
    group.addoption("--cuda-tma-strict", action="store_true", help="report disputed findings as errors, not as advice")
    group.addoption("--cuda-tma-require-judged", action="store_true", help="fail a test with an unjudged launch")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin the session before a conftest.py can import a runtime."""
    _begin(early_config, early_config.known_args_namespace)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Add the mark, and begin the session if pytest has loaded this plugin only now."""
    config.addinivalue_line(
        "markers", "cuda_tma(expected=...): the kinds of errors, such as 'race', that the kernels of a test must have"
    )
    _begin(config, config.option)


def _begin(config: pytest.Config, options: Any) -> None:
    if getattr(options, "cuda_tma", False) and not config.pluginmanager.has_plugin(_NAME):
        from cuda_tma._command.suite import Suite

        config.pluginmanager.register(Suite(options), _NAME)
