"""Write ``docs/compare_sanitizers.md``: what the simulator, and each tool of compute-sanitizer, says of wrong kernels.

    python compare_sanitizers.py --results $OUT/compare_sanitizers.jsonl     # on a GPU: some minutes
    python compare_sanitizers.py --page     # from what is recorded, with what the simulator says now: no GPU

Needs compute-sanitizer on PATH, and ``cuda_tma`` (installed, or ``PYTHONPATH=.``). Each kernel of
``compared_kernels.py``, and its mended twin, runs without a tool and under each, in a process of its own, several at a
time; what hangs is ended. Every result is a line of the file as soon as it is there: the same command goes on where it
was interrupted. The page lies beside the results, or in ``docs/`` if they are those of ``tests/data/``, where a run is
recorded: ``python compare_sanitizers.py --record --results FILE``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation" / "recordings"))

from compared_kernels import Case, cases, simulated  # noqa: E402
from compared_page import TOOLS, page  # noqa: E402
from recordings import write  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "compare_sanitizers.jsonl.gz"
PAGE = ROOT / "docs" / "compare_sanitizers.md"

__all__ = ["Job", "Runner", "jobs_of", "judged", "main"]

_HANGS_S = {"": 6, "tool": 12}  # these kernels take microseconds; under a tool, some milliseconds
_PATIENCE_S = 45  # of a process, with its start and its end
_FIRST_PORT, _PORTS = 49152, 32  # where compute-sanitizer listens; each that runs at the same time has its own
_MOST_CHARACTERS = 6000  # of a process's output, that are kept
Record = dict[str, Any]


class Job(NamedTuple):
    """One process: a kernel, or its mended twin, under a tool, or under none (``""``)."""

    case: Case
    is_mended: bool
    tool: str

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.case.name}|{'mended' if self.is_mended else 'wrong'}|{self.tool}"


def jobs_of(all_cases: Iterable[Case]) -> list[Job]:
    """All processes: kernels that are wrong first."""
    some = list(all_cases)
    wrong = [Job(case, False, tool) for case in some for tool in ("", *TOOLS)]
    return wrong + [Job(case, True, tool) for case in some if case.kind for tool in ("", *TOOLS)]


class Runner:
    """Runs processes, several at a time, and keeps what they say.

    Parameters
    ----------
    results : Path
        A line for each process that has ended.
    at_a_time : int
    patience_s : float
        After which a process is ended.
    command : callable, optional
        From a job and a port to what is executed.
    """

    def __init__(
        self,
        results: Path,
        at_a_time: int,
        patience_s: float = _PATIENCE_S,
        command: Callable[[Job, int], list[str]] | None = None,
    ):
        self._results, self._at_a_time, self._patience_s = results, at_a_time, patience_s
        self._command = command or _command
        self._ports: SimpleQueue[int] = SimpleQueue()
        for number in range(at_a_time):
            self._ports.put(_FIRST_PORT + _PORTS * number)

    def run(self, jobs: Iterable[Job], deadline: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Run those that have no result yet, until the deadline; `meanwhile` is called when all are under way."""
        known = self.records()
        self._end_the_last_line()
        left = [job for job in jobs if job.key not in known]
        with ThreadPoolExecutor(self._at_a_time) as pool:
            futures = [pool.submit(self._one, job, deadline) for job in left]
            meanwhile()
            for future in as_completed(futures):
                if (record := future.result()) is not None:
                    self.keep(record)

    def _one(self, job: Job, deadline: float) -> Record | None:
        if time.monotonic() > deadline:
            return None
        port = self._ports.get()
        try:
            record = self._run(job, port)
            if "No attachable process" in record["text"]:  # too many started at once
                record = self._run(job, port)
            return record
        finally:
            self._ports.put(port)

    def _run(self, job: Job, port: int) -> Record:
        began = time.monotonic()
        given = json.dumps({**job.case.launch(job.is_mended), "patience_s": _HANGS_S["tool" if job.tool else ""]})
        pipe, command = subprocess.PIPE, self._command(job, port)
        child = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        text, was_ended = _communicate(child, given, self._patience_s)
        kept = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}\n...\n{text[-_MOST_CHARACTERS:]}"
        seconds = round(time.monotonic() - began, 1)
        return {"key": job.key, "text": kept, "was_ended": was_ended, "status": child.returncode, "seconds": seconds}

    def _end_the_last_line(self) -> None:
        """It may have been cut off."""
        if self._results.exists() and not self._results.read_bytes().endswith(b"\n"):
            with self._results.open("a") as file:
                file.write("\n")

    def keep(self, record: Record) -> None:
        """One more line."""
        self._results.parent.mkdir(parents=True, exist_ok=True)
        with self._results.open("a", encoding="utf-8") as file:
            print(json.dumps(record), file=file, flush=True)

    def records(self) -> dict[str, Record]:
        """What is known, by key; a line that was cut off is none."""
        found = {}
        for line in _lines(self._results):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            found[record["key"]] = record
        return found


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def _short(record: Record) -> Record:
    """A result without the host's frames."""
    if "text" not in record:
        return record
    return {**record, "text": "\n".join(each for each in record["text"].splitlines() if "Host Frame" not in each)}


def _communicate(child: subprocess.Popen[str], given: str, patience_s: float) -> tuple[str, bool]:
    """What a process writes, and whether it had to be ended, with all that it started."""
    try:
        return child.communicate(given, timeout=patience_s)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=10)[0], True
    except subprocess.TimeoutExpired as stuck:  # in the driver: the system takes it away when it can
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


def _help(known: list[str] = []) -> str:  # noqa: B006  # asked for once
    if not known:
        known.append(subprocess.run(["compute-sanitizer", "--help"], capture_output=True, text=True).stdout)
    return known[0]


# ---- our own column, and where all this ran ----


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
    """As the head of this file says."""
    given = _options(argv)
    wanted = [case for case in cases() if given.only in case.name]
    runner = Runner(given.results, given.jobs)
    if not (given.page or given.record):
        _run(runner, wanted, given.limit_s)
    records = runner.records()
    if given.page:
        ran = {key.partition("|")[0] for key in records}
        records.update((each["key"], each) for each in judged(case for case in wanted if case.name in ran))
    if given.record or given.results == RECORDED:
        write(RECORDED, map(_short, records.values()))
    text = page(records, [case for case in wanted if f"{case.name}|simulator" in records])
    (PAGE if given.record or given.results == RECORDED else given.results.with_suffix(".md")).write_text(text, "utf-8")
    print(text.split("\n## ")[0])


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the simulator and compute-sanitizer say of wrong kernels.")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a line for each process; else in $OUT, or build/")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name has it")
    parser.add_argument("--jobs", type=int, default=max(1, min(14, (os.cpu_count() or 4) - 2)), metavar="N")
    parser.add_argument("--limit-s", type=float, default=360, metavar="N", help="no process is started after so long")
    parser.add_argument(
        "--page", action="store_true", help="run nothing: the page of the results, or of the recorded ones"
    )
    parser.add_argument("--record", action="store_true", help="run nothing: keep the results in tests/data/")
    given = parser.parse_args(argv)
    if given.results is None:
        folder = Path(os.environ.get("OUT", ROOT / "build"))
        given.results = RECORDED if given.page else folder / "compare_sanitizers.jsonl"
    if not (given.page or given.record) and shutil.which("compute-sanitizer") is None:
        parser.error("compute-sanitizer is not on PATH")
    return given


def _run(runner: Runner, wanted: list[Case], limit_s: float) -> None:
    runner.keep(_machine())

    def ours() -> None:
        for record in judged(wanted):
            runner.keep(record)

    runner.run(jobs_of(wanted), time.monotonic() + limit_s, ours)


if __name__ == "__main__":
    main()
