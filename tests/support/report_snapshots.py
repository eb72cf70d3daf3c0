"""The complete reports of the example kernels, which ``tests/data/reports`` contains.

``make bless`` (``python -m tests.support.report_snapshots``) writes the reports and shows the difference.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from cuda_tma import simulate
from cuda_tma._command.excerpts import described
from cuda_tma._command.sources import Sources
from tests.simulate._sanitize import test_real_bugs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "reports"
sys.path.append(str(ROOT / "tools"))

import write_findings  # noqa: E402


def of_kind(kind: str) -> str:
    """Return the reports of a kernel of ``tools/finding_kernels.py``: the report of the wrong kernel and of the fixed
    kernel."""
    sides = (("-", "wrong"), ("+", "fixed"))
    return "".join(
        f"==== {title}\n{_text(write_findings.reported(kind, side), write_findings.lines_of(kind, side))}"
        for side, title in sides
    )


def of_bug(name: str) -> str:
    """Return the report of a kernel of ``tests/real_bugs``."""
    (bug,) = (each for each in test_real_bugs.BUGS if each.name == name)
    return _text(test_real_bugs.launched(bug), bug.source)


def of_example(name: str) -> str:
    """Return the reports of the launches of an example at a small size."""
    # The module simulated_examples needs torch.
    from tests.support.simulated_examples import run_simulated

    with _reported() as reports:
        run_simulated(name)
    return _plain("".join(f"{report}\n" for report in reports))


EXAMPLES = (
    "attention",
    "conv_im2col",
    "copy_2d",
    "elementwise",
    "gather_rows",
    "gemm",
    "grouped_gemm",
    "kv_tiles",
    "transpose",
)
REPORTS = {
    **{f"kinds/{kind}": partial(of_kind, kind) for kind in write_findings.KERNELS},
    **{f"bugs/{bug.name}": partial(of_bug, bug.name) for bug in test_real_bugs.BUGS},
    **{f"examples/{name}": partial(of_example, name) for name in EXAMPLES},
}


def on_disk() -> dict[str, str]:
    """Return the stored reports by name."""
    return {str(path.relative_to(FOLDER).with_suffix("")): path.read_text() for path in sorted(FOLDER.rglob("*.txt"))}


@contextmanager
def _reported() -> Iterator[list[simulate.Report]]:
    """Record the report of each launch on a device in a list."""
    launch, reports = simulate.Device.launch, []

    def recorded(*args, **keywords):
        reports.append(launch(*args, **keywords))
        return reports[-1]

    simulate.Device.launch = recorded
    try:
        yield reports
    finally:
        simulate.Device.launch = launch


def _text(report: simulate.Report, source: str) -> str:
    """Return the text of all findings in a report, with lines of the source."""
    files = {place.file for finding in report.findings for places in _places(finding) for place in places}
    texts = dict.fromkeys((file for file in files if file.endswith(".cu")), source)
    sources = Sources(Path("kernel.cu"), texts=texts)
    found = ["".join(text for text, _ in described(finding, sources)) for finding in report.findings]
    return _plain("\n".join(found or ["no findings\n"]))


def _places(finding: simulate.Finding) -> list[tuple[simulate.Place, ...]]:
    return [finding.source, finding.other, *(places for _, places in finding.related)]


def _plain(text: str) -> str:
    """Return a text without folders, header lines and addresses, because these differ between machines and versions."""
    text = re.sub(r"\S*/([\w.]+\.(?:cuh?|h):)", r"\1", text)
    text = re.sub(r"(\.(?:cuh|h)):\d+(?::\d+)?", r"\1", text)
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)


def bless() -> None:
    """Write all reports to ``tests/data/reports``, and show the difference."""
    for path in FOLDER.rglob("*.txt"):
        path.unlink()
    for name, text_of in REPORTS.items():
        path = FOLDER / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of())
    subprocess.run(["git", "add", "--intent-to-add", str(FOLDER)], cwd=ROOT, check=False)
    subprocess.run(["git", "--no-pager", "diff", "--", str(FOLDER)], cwd=ROOT, check=False)


if __name__ == "__main__":
    bless()
