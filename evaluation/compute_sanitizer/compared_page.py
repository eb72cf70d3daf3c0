"""The page ``docs/compare_sanitizers.md``, which is made from the stored results of ``compare_sanitizers.py``."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from compared_kernels import FIXED, Case

TOOLS = ("memcheck", "racecheck", "synccheck")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ")
_REPORT = re.compile(r"^=+ (\S.*)$", re.MULTILINE)
# Some lines of compute-sanitizer are about the tool itself, and not about the kernel.
_NO_REPORT = (
    "COMPUTE-SANITIZER",
    "Target application",
    "Error: process",
    "ERROR SUMMARY",
    "RACECHECK SUMMARY",
    "LEAK SUMMARY",
    "No attachable",
    "Error: No attachable",
)
Record = dict[str, Any]


def ending(record: Record) -> dict[str, str]:
    """Return the outcome of a launch, from the last line of its process or from a verdict in its text."""
    for line in reversed(record["text"].splitlines()):
        if line.startswith('{"ended"'):
            try:
                return json.loads(line)
            except ValueError:
                break
    named = re.findall(r"CUDA_ERROR_\w+", record["text"])
    if named:
        return {"ended": named[-1]}
    return {"ended": "hangs" if "launches" in record["text"] else "does not start"}


def cell(record: Record | None) -> str:
    """Return the table cell of a tool, with the number of reports and the first report, or with the reason why reports
    are missing.
    """
    if record is None:
        return "not run"
    text = record["text"]
    if "Device not supported" in text:
        return "not supported here"
    said = [line for line in _REPORT.findall(text) if not line.startswith(_NO_REPORT)]
    summary = _SUMMARY.findall(text)
    count = int(summary[-1]) if summary else len(said)
    first = f" ({_escaped(said[0])})" if said and count else ""
    if summary:
        return f"{count}{first}"
    ended = ending(record)["ended"]  # Without a summary, the page shows how the process ended.
    return f"{count}{first}, hangs" if ended == "hangs" else f"no summary: {ended}"


def _escaped(text: str) -> str:
    """Remove addresses, which differ between runs, and escape the text for a table."""
    short = re.sub(r" (?:at|by) .*?(?= and |$)| \[\d+ hazards\]", "", text.removeprefix("Error: "))
    return short.replace("|", "\\|").strip().rstrip(".")[:100]


def _gpu(case: Case, records: dict[str, Record]) -> str:
    """Return the outcome of the launch without a tool, and the number of values that differ from the values of the
    fixed kernel.
    """
    wrong, fixed = (records.get(f"{case.name}|{which}|") for which in ("wrong", FIXED))
    if wrong is None:
        return "not run"
    ended = ending(wrong)
    if ended["ended"] != "ends" or not case.kind:
        return ended["ended"]
    right = ending(fixed) if fixed is not None else {"ended": ""}
    if right["ended"] != "ends":
        return "ends"
    differ = int((_values(ended) != _values(right)).sum())
    return f"ends, **{differ} values wrong**" if differ else "ends, values right"


def _values(ended: dict[str, str]) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(ended["values"])), np.int32)


def _ours(case: Case, records: dict[str, Record]) -> str:
    record = records.get(f"{case.name}|simulator")
    if record is None:
        return "not run"
    return record["said"] or "0"


def page(records: dict[str, Record], cases: Sequence[Case]) -> str:
    """Return the whole page from the results."""
    machine = records.get("machine", {"gpu": "no GPU yet", "compute_sanitizer": "none"})
    rows = [_row(case, records) for case in cases]
    return _PAGE.format(
        gpu=machine["gpu"].replace(", ", ", driver "),
        version=machine["compute_sanitizer"],
        columns=" | ".join(TOOLS),
        lines="|---" * len(TOOLS),
        rows="\n".join(f"| {' | '.join(row)} |" for row in rows),
        totals="\n".join(_totals([case for case in cases if case.kind], records)),
        fixed="\n".join(_fixed(cases, records)),
    )


def _row(case: Case, records: dict[str, Record]) -> list[str]:
    tools = [cell(records.get(f"{case.name}|wrong|{tool}")) for tool in TOOLS]
    return [
        f"`{case.name}`",
        case.kind or "-",
        str(case.culprit or "-"),
        _ours(case, records),
        _gpu(case, records),
        *tools,
    ]


def _totals(wrong: list[Case], records: dict[str, Record]) -> list[str]:
    kinds = [(case.kind, _ours(case, records)) for case in wrong]
    lines = [f"- the simulator: {sum(f' {kind},' in said for kind, said in kinds)} of {len(wrong)}, each by its kind"]
    for tool in TOOLS:
        said = [cell(records.get(f"{case.name}|wrong|{tool}")) for case in wrong]
        ran = [each for each in said if each[0].isdigit()]
        lines.append(
            f"- {tool}: {sum(not each.startswith('0') for each in ran)} of {len(ran)} have a report of any kind"
        )
    silent = [case for case in wrong if _gpu(case, records).startswith("ends")]
    lines.append(f"- on the GPU {len(silent)} of {len(wrong)} end without an error")
    return lines


def _fixed(cases: Sequence[Case], records: dict[str, Record]) -> list[str]:
    """Return a list of the reports on fixed kernels, which should not exist."""
    lines, count = [], 0
    for case in cases:
        for tool in TOOLS:
            record = records.get(f"{case.name}|{FIXED}|{tool}")
            said = cell(record)
            count += record is not None
            if record is not None and said != "0":
                lines.append(f"- {tool} of `{case.name}`: {said}")
        record = records.get(f"{case.name}|{FIXED}|")
        if record is not None and (ended := ending(record)["ended"]) != "ends":
            lines.append(f"- `{case.name}` itself: {ended}")
    return lines or [f"Nothing, in {count} runs."]


_PAGE = """# Comparison with compute-sanitizer

Generated by `evaluation/compute_sanitizer/compare_sanitizers.py`: {gpu}; compute-sanitizer {version}. Each kernel of
`tests/real_bugs/`, and ten faults in one kernel (`test_sanitizer.py`), ran on the simulator, on the GPU without a tool,
and under each tool. A cell contains the number of reports and the first report. The cell `0` means that a tool reported
nothing. Some reports state only that the launch failed, without a cause. The cell "hangs" means that the launch had not
ended after some seconds.

{totals}

| kernel | defect | line | simulator | GPU | {columns} |
|---|---|---|---|---{lines}|
{rows}

## Reports on the fixed kernels

{fixed}

The simulator has no finding in any fixed kernel (`test_real_bugs.py`, `test_sanitizer.py`).
"""
