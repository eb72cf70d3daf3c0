"""Write docs/found/blackwell.md, the page of kernels for sm_100 and sm_120 that ran without such a GPU.

The data are sm100_corpus/results.json. A test compares the page with the data, and the data with the lists of kernels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from write_evidence import table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "found" / "blackwell.md"
DATA = HERE / "sm100_corpus" / "results.json"
HEAD = """\
<!-- evaluation/write_blackwell.py writes this page -->

# Kernels for Blackwell

No test of this project ran on a GPU of compute capability 10.0 or 12.0. The tables contain kernels of four compilers
that ran on the simulator in place of a GPU. Users of these compilers run their products and attentions on such GPUs. If
a kernel gives NumPy's or torch's result on the simulator, then the compiler and the simulator agree about the layouts,
descriptors and maps of the kernel. `evaluation/README.md` lists the scripts of these runs.

A kernel is right if its program passes its own comparison, and the sanitizer reports no error. Each kernel ran under 1
schedule and under 4 schedules.
"""
ORDER = """\
## The order of accumulation

The order in which tensor cores of Blackwell add products, and the bits that they keep between two additions, are
unknown. The simulator uses the order and the rounding that were recorded for `wgmma` on an H200. Most kernels of the
tables multiply small integers by powers of two, whose sums are exact in each order. The other kernels are compared
within the bounds of their programs. A result on a GPU may therefore differ from the simulator's in the last bits.
"""
GROUPS = ("compiler", "kernels", "sizes", "right, 1 schedule", "right, 4 schedules")
ERRORS = ("kernel", "error", "class", "reason")
DOCUMENTS = ("statement", "source", "kernels that agree")


def read() -> dict[str, Any]:
    return json.loads(DATA.read_text("utf-8"))


def of_target(data: dict[str, Any], target: str, name: str) -> list[str]:
    """Return the table of one target, with the names of the kernels in a list after it."""
    groups = [group for group in data["groups"] if group["target"] == target]
    rows = []
    for group in groups:
        outcomes = group["kernels"].values()
        counts = [f"{sum(each[at] for each in outcomes)} of {len(outcomes)}" for at in (0, 1)]
        rows.append((group["compiler"], group["subject"], group["sizes"], *counts))
    total = sum(len(group["kernels"]) for group in groups)
    lines = [f"## {name}", "", f"{total} kernels ran.", "", *table(GROUPS, rows)]
    for group in groups:
        names = ", ".join(f"`{each}`" for each in group["kernels"])
        lines.append(f"- {group['compiler']}, {group['subject']} (`{group['script']}`): {names}")
    return [*lines, ""]


def page() -> str:
    """Return the text of the page."""
    data = read()
    errors = [(f"`{each['kernel']}`", each["error"], each["class"], each["reason"]) for each in data["errors"]]
    documents = [(each["statement"], each["source"], each["kernels"]) for each in data["documents"]]
    lines = [
        HEAD,
        *of_target(data, "sm_100", "Compute capability 10.0"),
        *of_target(data, "sm_120", "Compute capability 12.0"),
        "## Kernels with errors",
        "",
        "These kernels, all but one of CUTLASS 7107b0553, also ran. The [evidence page](evidence.md) defines the",
        "classes.",
        "",
        *table(ERRORS, errors),
        "## Statements that rest on documents",
        "",
        "Each statement of this table is documented, not verified on hardware. The last column contains the kernels",
        "whose results would be wrong if the statement and the compiler disagreed.",
        "",
        *table(DOCUMENTS, documents),
        ORDER,
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
