"""Insert small synchronization faults into kernels and the device header, and count the faults that the simulator
finds.

The mutants are those of kernel_mutators.py, on lines that a launch of kernel_subjects.py executes. With --beside, the
mutants exclude lines that an earlier draw contains. Each mutant runs in a separate process, one at a time, under
several schedules, and ends after --seconds. Results are JSON, with one result in each line. The module
kernel_outcomes.py defines a found mutant. The file reasons.txt contains the reason, written by hand, for each mutant
that is not found.

Examples
--------
    python mutate_kernels.py run --seed 1 --count 220 --output one.jsonl
    python mutate_kernels.py run --seed 2 --count 110 --output more.jsonl --beside one.jsonl
    python mutate_kernels.py again mutants.jsonl.gz    # the same mutants again
    python mutate_kernels.py summary mutants.jsonl.gz  # the found shares, in total and by mutator
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(Path(__file__).parent)]

from kernel_mutators import Mutant, mutants_of  # noqa: E402
from kernel_outcomes import Culprit, outcome_of, summary, wanted_of  # noqa: E402
from kernel_subjects import SUBJECTS  # noqa: E402
from kernel_trials import Fault, baseline, same_machine_code, tried  # noqa: E402

from cuda_tma import simulate  # noqa: E402

HEADERS = ROOT / "cuda_tma" / "include" / "cuda_tma"
KEPT, REASONS = (Path(__file__).with_name(name) for name in ("mutants.jsonl.gz", "reasons.txt"))


@dataclass(frozen=True)
class Candidate:
    """A mutant of a kernel or header, and its launch."""

    subject: str
    header: str  # For a mutant of the kernel itself, the name of the header is empty.
    mutant: Mutant
    text: str  # `text` is the line without the mutation.

    @property
    def path(self) -> str:
        return self.header or self.subject

    @property
    def key(self) -> str:
        """Return a key that depends on the line and its replacement, and not on preceding lines or comments."""
        line, what = (text.partition("//")[0].strip() for text in (self.place[1], self.what))
        return hashlib.sha256(f"{self.path}\0{line}\0{self.mutant.mutator}\0{what}".encode()).hexdigest()[:8]

    @property
    def what(self) -> str:
        return self.mutant.what[:200]

    @property
    def place(self) -> tuple[str, str]:
        return self.path, self.text.split("\n")[self.mutant.line - 1].strip()

    def fault(self) -> Fault:
        return Fault(self.header, self.mutant.apply(self.text))


# ---- processes ----


def in_process(seconds: float, act: Callable[..., dict], *arguments: Any) -> dict:
    """Return the result of a function from a process, which ends at a time limit."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        try:
            there.send(act(*arguments))
        except BaseException as error:
            there.send({"outcome": "crash", "error": f"{type(error).__name__}: {error}"[:300]})

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else {"outcome": "timeout"}
    except EOFError:
        return {"outcome": "crash", "error": "the process died"}
    finally:
        process.kill()
        process.join()


def baselines(names: Iterable[str]) -> dict[str, dict]:
    """Run each subject without a fault. Require that the subject has no error."""
    nothing = 'extern "C" __global__ void nothing() {}'
    # The first compilation loads NVRTC for all processes that the script forks.
    simulate.Device().compile(nothing, "nothing")
    known = {name: in_process(600, baseline, name) for name in names}
    for name, found in known.items():
        errors = [row["message"] for row in found.get("findings", ()) if row["severity"] == "error"]
        if found["outcome"] != "launched" or errors:
            raise SystemExit(f"{name} without a fault: {errors or found}")
    return known


# ---- the draw ----


def candidates(known: dict[str, dict], seed: int) -> list[Candidate]:
    """Return all mutants of lines that launches execute, in random order."""
    chosen, found = random.Random(seed), {}
    for name, subject in known.items():
        for mutant in mutants_of(subject["source"]):
            if any(_touches(mutant, line) for line in _lines(subject, "")):
                candidate = Candidate(name, "", mutant, subject["source"])
                found.setdefault((candidate.place[1], mutant.what), candidate)
    for path in sorted(HEADERS.glob("*.cuh")):
        text = path.read_text()
        reached = {name: _lines(subject, path.name) for name, subject in known.items()}
        for mutant in mutants_of(text):
            names = [name for name, lines in reached.items() if any(_touches(mutant, line) for line in lines)]
            if names:
                candidate = Candidate(chosen.choice(names), path.name, mutant, text)
                found.setdefault((candidate.key, ""), candidate)
    every = sorted(found.values(), key=lambda candidate: candidate.key)
    chosen.shuffle(every)
    return every


def _lines(subject: dict, header: str) -> set[int]:
    """Return the lines of a header, or of the kernel, whose instructions are executed."""
    is_there = (lambda file: file.endswith(f"cuda_tma/{header}")) if header else (lambda file: file.endswith(".cu"))
    return {line for chain in subject["reached"] for file, line in chain if is_there(file)}


def _touches(mutant: Mutant, line: int) -> bool:
    return mutant.line <= line <= mutant.last


def drawn(every: list[Candidate], before: Sequence[dict], of_a_line: int) -> Iterator[Candidate]:
    """Yield at most `of_a_line` mutants of each line. Omit mutants of lines that an earlier draw contains."""
    counts = {(row["path"], row["text"]): of_a_line for row in before}
    for candidate in every:
        place = candidate.path, candidate.place[1][:100]
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= of_a_line:
            yield candidate


# ---- the trials ----


def trial(candidate: Candidate, known: dict, seconds: float) -> dict:
    """Return a row with the mutant and its outcome."""
    mutant = candidate.mutant
    culprit = Culprit.of(candidate.header, (mutant.line, mutant.last), known["chains"])
    wanted = wanted_of(mutant.mutator, culprit)
    found = in_process(seconds, tried, candidate.subject, candidate.fault(), known, wanted)
    row = {
        "id": candidate.key, "subject": candidate.subject, "path": candidate.path, "line": mutant.line,
        "last": mutant.last, "text": candidate.place[1][:100], "mutator": mutant.mutator, "what": candidate.what,
    }  # fmt: skip
    row |= outcome_of(found, mutant.mutator, known["memory"], wanted)
    if row["outcome"] in ("silent", "values"):
        same = in_process(60, lambda: {"same": same_machine_code(candidate.subject, candidate.fault())})
        if same.get("same"):
            row["outcome"] = "identical SASS"
    return row


KEYS = (
    "id", "batch", "subject", "path", "line", "text", "mutator", "what", "outcome", "kind", "severity", "schedule",
    "memory", "drawn",
)  # fmt: skip
COUNTED_OUT = ("does not compile", "does not launch", "the same PTX")


def run(given: argparse.Namespace) -> None:
    names = [name for name in SUBJECTS if name.startswith(tuple(given.of))]
    known = baselines(names)
    before = [row for path in given.beside for row in read(path)]
    rows: list[dict] = []
    with given.output.open("w") as file:
        for candidate in drawn(candidates(known, given.seed), before, given.of_a_line):
            row = trial(candidate, known[candidate.subject], given.seconds)
            if row["outcome"] in COUNTED_OUT:
                continue
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            print(f"{len(rows)} {described(row)}", flush=True)
            if len(rows) >= given.count:
                break
    print(summary(rows, {}))


def again(given: argparse.Namespace) -> None:
    """Run the same mutants again, by their ids, on the present sources."""
    rows = [row for row in read(given.results) if not given.only or row["id"] in given.only]
    known = baselines(sorted({row["subject"] for row in rows}))
    texts = {path.name: path.read_text() for path in HEADERS.glob("*.cuh")}
    of_text = {name: mutants_of(text) for name, text in texts.items()}
    of_text |= {name: mutants_of(subject["source"]) for name, subject in known.items()}
    new = {}  # The key contains the line number, because two equal statements have the same id.
    for row in rows:
        header = row["path"] if row["path"] in texts else ""
        text = texts.get(header) or known[row["subject"]]["source"]
        every = [Candidate(row["subject"], header, mutant, text) for mutant in of_text.get(row["path"], [])]
        here = [each for each in every if each.key == row["id"]]
        if not here:
            print(f"gone: {described(row)}")
            continue
        found = trial(min(here, key=lambda each: abs(each.mutant.line - row["line"])), known[row["subject"]], 300)
        new[row["id"], row["line"]] = found
        if given.only or found["outcome"] != row["outcome"]:
            print(f"was {row['outcome']}: {described(found)}", flush=True)
    if given.write:
        kept = [
            new.get((row["id"], row["line"]), row) | {key: row[key] for key in ("batch", "drawn") if key in row}
            for row in read(given.results)
        ]
        write(given.results, kept)
    print(summary(list(new.values()), reasons()))


def write(path: Path, rows: Iterable[dict]) -> None:
    """Write each mutant and its outcome. For a finding, write only its kind."""
    lines = [{key: row[key] for key in KEYS if key in row} for row in rows]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0) if path.suffix == ".gz" else text)


def reasons() -> dict[str, tuple[str, str]]:
    """Return the verdict and the reason for each mutant that was classified by hand."""
    found = {}
    for line in REASONS.read_text().splitlines():
        match = re.fullmatch(r"([0-9a-f]{8}) (equivalent|values|missed): (\S.*)", line)
        if match is None:
            raise SystemExit(f"{REASONS.name}: a line is `ID equivalent|values|missed: why`: {line!r}")
        found[match[1]] = match[2], match[3]
    return found


def read(path: Path) -> list[dict]:
    text = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(text) if path.suffix == ".gz" else text).splitlines()]


def described(row: dict) -> str:
    said = f" ({row['kind']}, {row['severity']}, {row['schedule']})" if "kind" in row else ""
    place = f"{row['id']} {row['subject']}: {row['path']}:{row['line']}"
    return f"{place}: {row['mutator']}: {row['what'][:110]}: {row['outcome']}{said}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_run = commands.add_parser("run", help="draw mutants and try them")
    of_run.add_argument("--seed", type=int, required=True)
    of_run.add_argument("--count", type=int, required=True)
    of_run.add_argument("--output", type=Path, required=True)
    of_run.add_argument("--beside", type=Path, action="append", default=[], help="results whose lines are left out")
    of_run.add_argument("--of", action="append", default=[], help="how the subjects' names begin")
    of_run.add_argument("--of-a-line", type=int, default=2, help="most mutants of a line")
    of_run.add_argument("--seconds", type=float, default=60)
    of_again = commands.add_parser("again", help="try the same mutants on the sources as they are")
    of_again.add_argument("results", type=Path)
    of_again.add_argument("--only", nargs="*", help="ids")
    of_again.add_argument("--write", action="store_true", help="write the outcomes into the file")
    commands.add_parser("summary", help="the number of each outcome").add_argument("results", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.command == "run":
        given.of = given.of or [""]
        run(given)
    elif given.command == "again":
        again(given)
    else:
        rows = [row for path in given.results for row in read(path)]
        for mutator in sorted({row["mutator"] for row in rows}):
            print(mutator, summary([row for row in rows if row["mutator"] == mutator], reasons()), sep=": ")
        print(summary(rows, reasons()))


if __name__ == "__main__":
    main()
