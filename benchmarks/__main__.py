"""The command ``python -m benchmarks [SUITE ...] [--output DIR]``, which runs every suite that this machine supports.

The command prints the results as Markdown tables.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import benchmarks

from . import comparison, kernels
from .kernels import figures

_NOT_SUITES = ("__main__", "comparison", "drawing")
LEAST_REPEATS = 15
RUNS = 3
_MARKDOWN: dict[type, Callable[[Any], str]] = {
    comparison.Comparison: comparison.markdown,
    figures.Figures: figures.markdown,
}


def main(argv: Sequence[str] | None = None) -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _NOT_SUITES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"{', '.join(names)}; all if not given")
    parser.add_argument("--repeats", type=int, default=LEAST_REPEATS, help=f"{LEAST_REPEATS} or more")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"processes that time the kernels (default: {RUNS})")
    parser.add_argument(
        "--family",
        action="append",
        choices=[*kernels.FAMILIES],
        help="of the kernels, these alone; with --output, the tables of others that DIR has already stay",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="also write SUITE.md, SUITE.json with each repeat, and SUITE.svg"
    )
    given = parser.parse_args(argv)
    if given.repeats < LEAST_REPEATS or not set(given.suites) <= set(names) or given.runs < 1:
        parser.error(f"suites are {', '.join(names)}; --repeats is {LEAST_REPEATS} or more, --runs 1 or more")
    print("# Benchmarks\n")
    for name in given.suites or names:
        only = {"families": given.family} if given.family and name == "kernels" else {}
        run(name, given.repeats, given.runs, given.output, **only)


def run(name: str, repeats: int, runs: int, output: Path | None, **only: Sequence[str]) -> None:
    """Print the tables of a suite, or the reason why the suite cannot run. With `output`, also write the tables to
    files.
    """
    suite = importlib.import_module(f"benchmarks.{name}")
    if reason := suite.unavailable():
        print(f"`{name}` was not run: {reason}\n")
        return
    machine = suite.machine()
    print(f"{machine}\n", flush=True)
    tables = suite.tables(repeats, runs, **only)
    if only and output is not None:
        tables = kernels.beside_recorded(tables, output / "kernels.json")
    text = "\n".join(map(markdown, tables))
    print(text, flush=True)
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.md").write_text(f"{machine}\n\n{text}")
    content = {"machine": machine, "tables": [asdict(table) for table in tables]}
    (output / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    if hasattr(suite, "draw"):
        try:
            suite.draw(tables, output / f"{name}.svg")
        except ImportError as error:
            print(f"{name}.svg was not drawn: {error}")


def markdown(table: comparison.Comparison | figures.Figures) -> str:
    return _MARKDOWN[type(table)](table)


if __name__ == "__main__":
    main()
