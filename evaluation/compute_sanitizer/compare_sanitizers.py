"""Write ``docs/compare_sanitizers.md`` with the reports of the simulator and of compute-sanitizer on wrong kernels.

The script needs compute-sanitizer on PATH, and ``cuda_tma`` (installed, or ``PYTHONPATH=.``). Each kernel of
``compared_kernels.py``, and its fixed twin, runs without a tool and under each tool, in a separate process. Several
processes run at a time. The script ends a process that hangs. To record a run, copy its results over the results in
``tests/data/``, and then use ``--page``.

Examples
--------
    python compare_sanitizers.py --results $OUT/compare_sanitizers.jsonl.gz     # on a GPU: some minutes
    python compare_sanitizers.py --page     # from the recorded results and new findings of the simulator, without a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation" / "recordings"))

from compared_kernels import FIXED, Case, cases, simulated  # noqa: E402
from compared_page import TOOLS, page  # noqa: E402
from recordings import read, write  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "compare_sanitizers.jsonl.gz"
PAGE = ROOT / "docs" / "compare_sanitizers.md"

# A kernel counts as hanging after seconds, because a right kernel takes microseconds, or milliseconds under a tool.
_HANGS_S = {"": 6, "tool": 12}
_PATIENCE_S = 45  # The time limit of a process, including its start and its end, is 45 seconds.
_FIRST_PORT, _PORTS = 49152, 32  # Each concurrent process has its own port of compute-sanitizer.
_MOST_CHARACTERS = 6000  # The script keeps at most 6000 characters of a process's output.
Record = dict[str, Any]


class Job(NamedTuple):
    """A process that runs a kernel or its fixed twin, under a tool or without a tool (``""``)."""

    case: Case
    is_fixed: bool
    tool: str

    @property
    def key(self) -> str:
        """Return the name of the job in the file of results."""
        return f"{self.case.name}|{FIXED if self.is_fixed else 'wrong'}|{self.tool}"


def jobs_of(all_cases: Iterable[Case]) -> list[Job]:
    """Return all processes, with the processes of wrong kernels first."""
    some = list(all_cases)
    wrong = [Job(case, False, tool) for case in some for tool in ("", *TOOLS)]
    return wrong + [Job(case, True, tool) for case in some if case.kind for tool in ("", *TOOLS)]


def run_jobs(
    jobs: Iterable[Job],
    at_a_time: int,
    limit_s: float,
    command: Callable[[Job, int], list[str]] | None = None,
    patience_s: float = _PATIENCE_S,
) -> list[Record]:
    """Return the output of each job that begins within the time limit. The function `command` returns the command line
    of a job.
    """
    deadline = time.monotonic() + limit_s
    ports: SimpleQueue[int] = SimpleQueue()
    for number in range(at_a_time):
        ports.put(_FIRST_PORT + _PORTS * number)

    def one(job: Job) -> Record | None:
        if time.monotonic() > deadline:
            return None
        port = ports.get()
        try:
            record = _run(job, (command or _command)(job, port), patience_s)
            # The message means that too many processes started at the same time.
            if "No attachable process" in record["text"]:
                record = _run(job, (command or _command)(job, port), patience_s)
            return record
        finally:
            ports.put(port)

    with ThreadPoolExecutor(at_a_time) as pool:
        return [record for record in pool.map(one, jobs) if record is not None]


def _run(job: Job, command: list[str], patience_s: float) -> Record:
    began = time.monotonic()
    given = json.dumps({**job.case.launch(job.is_fixed), "patience_s": _HANGS_S["tool" if job.tool else ""]})
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    text, was_ended = _communicate(child, given, patience_s)
    text = "\n".join(line for line in text.split("\n") if "Host Frame" not in line)
    kept = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}\n...\n{text[-_MOST_CHARACTERS:]}"
    seconds = round(time.monotonic() - began, 1)
    return {"key": job.key, "text": kept, "was_ended": was_ended, "status": child.returncode, "seconds": seconds}


def records_in(path: Path) -> dict[str, Record]:
    """Return the results in a file by the names of their jobs."""
    return {record["key"]: record for record in read(path)}


def _communicate(child: subprocess.Popen[str], given: str, patience_s: float) -> tuple[str, bool]:
    """Return the output of a process, and whether the script killed the process with all its children."""
    try:
        return child.communicate(given, timeout=patience_s)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=10)[0], True
    # A process in a call of the driver ends later.
    except subprocess.TimeoutExpired as stuck:
        said = stuck.stdout or ""
        return (said if isinstance(said, str) else said.decode(errors="replace")), True


def _command(job: Job, port: int) -> list[str]:
    run = [sys.executable, str(Path(__file__).with_name("run_compared.py"))]
    if not job.tool:
        return run
    options = ["--tool", job.tool, "--target-processes", "application-only"]
    options += ["--report-api-errors", "no"] if job.tool == "memcheck" else []
    for option, value in (("--base-port", port), ("--launch-timeout", 60)):
        options += [option, str(value)] if option in _help() else []
    return ["compute-sanitizer", *options, *run]


def _help(known: list[str] = []) -> str:  # noqa: B006  # The default list caches the output.
    if not known:
        known.append(subprocess.run(["compute-sanitizer", "--help"], capture_output=True, text=True).stdout)
    return known[0]


# ---- the column of the simulator, and the machine ----


def judged(wanted: Iterable[Case]) -> Iterator[Record]:
    for case in wanted:
        found = simulated(case).findings
        ours = [finding for finding in found if finding.kind == case.kind] or list(found)
        first = ours[0] if ours else None
        said = f"{first.severity}: {first.kind}, line {first.source[-1].line}" if first and first.source else ""
        yield {"key": f"{case.name}|simulator", "said": said, "culprit": case.culprit, "kind": case.kind}


def _machine() -> Record:
    def said(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    version = re.findall(r"[0-9]+(?:[.][0-9]+)+", said("compute-sanitizer", "--version"))
    gpu = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0")
    return {"key": "machine", "gpu": gpu, "compute_sanitizer": version[0] if version else "of unknown version"}


def main(argv: list[str] | None = None) -> None:
    """Run the comparison, or write its page again."""
    given = _options(argv)
    wanted = [case for case in cases() if given.only in case.name]
    if not given.page:
        ran = run_jobs(jobs_of(wanted), given.jobs, given.limit_s)
        write(given.results, [_machine(), *ran, *judged(wanted)])
    records = records_in(given.results)
    compared = [case for case in wanted if f"{case.name}|simulator" in records]
    if given.page:
        records.update((each["key"], each) for each in judged(compared))
        write(given.results, records.values())
    text = page(records, compared)
    (PAGE if given.results == RECORDED else given.results.with_suffix(".md")).write_text(text, "utf-8")
    print(text.split("\n## ")[0])


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare reports of the simulator and of compute-sanitizer.")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a .jsonl.gz with a line for each process")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name has it")
    parser.add_argument("--jobs", type=int, default=max(1, min(14, (os.cpu_count() or 4) - 2)), metavar="N")
    parser.add_argument("--limit-s", type=float, default=360, metavar="N", help="no process is started after so long")
    parser.add_argument("--page", action="store_true", help="run no process: write the page of the results again")
    given = parser.parse_args(argv)
    given.results = given.results or (RECORDED if given.page else ROOT / "build" / "compare_sanitizers.jsonl.gz")
    if not given.page and shutil.which("compute-sanitizer") is None:
        parser.error("compute-sanitizer is not on PATH")
    return given


if __name__ == "__main__":
    main()
