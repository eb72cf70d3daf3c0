"""Put small faults into the package, one at a time, and ask the tests which of them they notice.

    python tools/mutate.py run --seed 1 --count 120 --output mutants.jsonl
    python tools/mutate.py show mutants.jsonl              # the survivors, as differences
    python tools/mutate.py summary mutants.jsonl --verdicts verdicts.txt

`run` draws mutants from the .py and .pyx files of the package, at most one of a line, and tries each in a copy of the
tree; for Cython the one module is built again. First run the doctests of the module and the tests most likely to
notice (those that name what it defines, or noticed another mutant of it), then all others. What does not end is
noticed, too. The tree without a fault comes before all, and must pass. Results are JSON, one a line: stopped and
started again, `run` goes on where it was. A verdict on a survivor is a line `ID equivalent: why` or `ID gpu: why`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from mutants import Mutant, is_other_program, mutants_of

BUILT = ("*.so", "build/cython", "build/temp*")
FIRST_FILES, FIRST_SECONDS = 6, 40
MOST_BYTES = 8 << 30  # of memory for a process: a mutant may ask for everything
CAUGHT = ("killed", "timeout")


@dataclass
class Tree:
    """A copy of the sources that is built and passes, and what is known of its tests."""

    root: Path
    package: str
    pytest_arguments: Sequence[str] = ()
    seconds: dict[str, float] = field(default_factory=dict)  # of each test file, in the tree without a fault
    timeout: float = 1200

    @property
    def sources(self) -> list[str]:
        files = (path for kind in ("*.py", "*.pyx") for path in (self.root / self.package).rglob(kind))
        return sorted(str(path.relative_to(self.root)) for path in files)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def digest(self) -> str:
        """Of everything that a mutant is drawn from."""
        content = hashlib.sha256()
        for path in self.sources:
            content.update(f"{path}\0{self.text(path)}\0".encode())
        return content.hexdigest()[:16]


def copy_of(repository: Path, target: Path) -> None:
    """What git knows or would add, and what was built: beside it, .git itself stays behind."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=repository, capture_output=True, text=True, check=True
    )
    built = [path for pattern in BUILT for path in repository.glob(pattern if "/" in pattern else f"**/{pattern}")]
    for path in [*(repository / name for name in names.stdout.splitlines()), *built]:
        if path.is_file() or path.is_dir():
            place = target / path.relative_to(repository)
            place.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, place)  # both keep the times that `build` reads


def command(arguments: Sequence[str], cwd: Path, timeout: float) -> tuple[int | None, str]:
    """Exit status, None if time ran out, and output. Whatever it started ends with it."""
    environment = os.environ | {"PYTHONPATH": str(cwd), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(
        arguments,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def build(root: Path) -> tuple[int | None, str]:
    """The extension modules whose sources are newer than they are."""
    if not (root / "setup.py").exists():
        return 0, ""
    return command([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], root, 600)


def pytest(tree: Tree, root: Path, paths: Sequence[str], *more: str) -> tuple[int | None, str]:
    arguments = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
    return command([*arguments, *tree.pytest_arguments, *more, *paths], root, tree.timeout)


def measure(tree: Tree) -> None:
    """Build the tree and run all of its tests, which must pass; how long each file takes says what comes first."""
    status, output = build(tree.root)
    if status:
        raise SystemExit(f"the tree does not build:\n{output}")
    report, begin = tree.root / "times.xml", time.monotonic()
    status, output = pytest(tree, tree.root, (), f"--junitxml={report}")
    if status != 0:
        raise SystemExit(f"the tests fail without any mutant:\n{output[-3000:]}")
    tree.timeout = 120 + 4 * (time.monotonic() - begin)
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        while parts and not (tree.root / "/".join(parts)).with_suffix(".py").exists():
            parts.pop()  # a class within the file
        if parts:
            name = f"{'/'.join(parts)}.py"
            tree.seconds[name] = tree.seconds.get(name, 0) + float(case.get("time", 0))


def draw(tree: Tree, seed: int) -> Iterator[tuple[int, Mutant]]:
    """All mutants in random order, numbered; of each line the first alone."""
    texts = {path: tree.text(path) for path in tree.sources}
    everything = [mutant for path, text in texts.items() for mutant in mutants_of(path, text)]
    random.Random(seed).shuffle(everything)
    lines = set()
    for number, mutant in enumerate(everything):
        place = mutant.path, mutant.line
        if place not in lines and is_other_program(mutant, texts[mutant.path]):
            lines.add(place)
            yield number, mutant


def names_of(tree: Tree, module: Path) -> set[str]:
    """The module, what it defines, and the modules that import it."""
    defined = re.findall(r"^ *(?:def|class|cp?def [\w* ]*?)\b(\w+)\s*[(:]", tree.text(str(module)), re.M)
    imports = re.compile(rf"^.*\bc?import\b.*\b{module.stem}\b|^from \S*\b{module.stem} c?import", re.M)
    importers = {Path(path).stem for path in tree.sources if imports.search(tree.text(path))}
    return {module.stem, *importers, *(name for name in defined if not name.startswith("__"))} - {"__init__"}


def likely(tree: Tree, mutant: Mutant, results: Sequence[dict]) -> list[str]:
    """The doctests of the mutant's module, and the test files that are most likely to notice it, soonest first."""
    module = Path(mutant.path)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names_of(tree, module))))})\b")
    noticed = Counter(r["by"].partition("::")[0] for r in results if r["path"] == mutant.path and r["by"])
    worth = {}
    for path, seconds in tree.seconds.items():
        named = len(pattern.findall(tree.text(path))) + (50 if module.stem.strip("_") in Path(path).stem else 0)
        worth[path] = (named + 100 * noticed[path]) / (1 + seconds)
    chosen, total = [], 0.0
    for path in sorted(worth, key=lambda path: -worth[path])[:FIRST_FILES]:
        total += tree.seconds[path]
        if worth[path] and total < FIRST_SECONDS and path != mutant.path:
            chosen.append(path)
    return [*([mutant.path] if mutant.path in tree.seconds else []), *chosen]


def outcome(tree: Tree, mutant: Mutant, first: Sequence[str]) -> dict:
    """Try one mutant in a copy of the tree: what became of it, and the test that noticed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder, "tree")
        shutil.copytree(tree.root, root, symlinks=True)
        (root / mutant.path).write_text(mutant.apply(tree.text(mutant.path)))
        if mutant.path.endswith(".pyx") and build(root)[0] != 0:
            return {"outcome": "does not compile", "by": ""}
        rest = [path for path in tree.seconds if path not in first]
        for paths in filter(None, (list(first), rest)):
            status, output = pytest(tree, root, paths)
            if status is None:
                return {"outcome": "timeout", "by": ""}
            if status not in (0, 5):  # 5: no tests there
                found = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", output, re.M)
                return {"outcome": "killed", "by": found[1] if found else f"exit status {status}"}
    return {"outcome": "survived", "by": ""}


def read(path: Path) -> tuple[dict, list[dict]]:
    """The head of a file of results, and the results."""
    head, *results = [json.loads(line) for line in path.read_text().splitlines()]
    return head, results


def run(given: argparse.Namespace) -> None:
    repository = Path(given.root).resolve()
    with tempfile.TemporaryDirectory(prefix="unmutated-") as folder:
        tree = Tree(Path(folder), given.package, shlex.split(given.pytest))
        copy_of(repository, tree.root)
        head = {"seed": given.seed, "package": given.package, "sources": tree.digest()}
        results: list[dict] = []
        if given.output.exists():
            before, results = read(given.output)
            if {name: before[name] for name in head} != head:
                raise SystemExit(f"{given.output} is of other sources or another seed: {before}, not {head}")
            tree.seconds, tree.timeout = before["seconds"], before["timeout"]
            build(tree.root)
        else:
            measure(tree)
            head |= {"seconds": tree.seconds, "timeout": tree.timeout}
            given.output.write_text(json.dumps(head) + "\n")
        _try_all(tree, given, results)
    print(summary(given.output, None))


def _try_all(tree: Tree, given: argparse.Namespace, results: list[dict]) -> None:
    """Until so many mutants that compile have been tried."""
    lock = threading.Lock()
    known = {result["id"] for result in results}
    drawn = ((number, mutant) for number, mutant in draw(tree, given.seed) if number not in known)

    def one(number: int, mutant: Mutant) -> None:
        begin = time.monotonic()
        found = outcome(tree, mutant, likely(tree, mutant, list(results)))
        row = {"id": number, "path": mutant.path, "line": mutant.line, "what": mutant.what, **found}
        row["seconds"] = round(time.monotonic() - begin, 1)
        with lock, given.output.open("a") as file:
            results.append(row)
            file.write(json.dumps(row) + "\n")
            print(f"{len(tried(results))}/{given.count} {described(row)}", flush=True)

    running: set[Future] = set()
    with ThreadPoolExecutor(given.jobs) as pool:
        for number, mutant in drawn:
            while len(running) >= given.jobs or (running and len(tried(results)) + len(running) >= given.count):
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            if len(tried(results)) >= given.count:
                break
            running.add(pool.submit(one, number, mutant))
        for future in running:
            future.result()


def tried(results: Sequence[dict]) -> list[dict]:
    return [result for result in results if result["outcome"] != "does not compile"]


def described(row: dict) -> str:
    by = f" by {row['by']}" if row["by"] else ""
    return f"{row['id']}: {row['path']}:{row['line']}: {row['what'][:160]}: {row['outcome']}{by} ({row['seconds']} s)"


def verdicts_in(text: str) -> dict[int, tuple[str, str]]:
    """Of each survivor judged by hand: the verdict, `equivalent` or `gpu`, and why.

    >>> verdicts_in("12 equivalent: both are 0 there")
    {12: ('equivalent', 'both are 0 there')}
    """
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = re.fullmatch(r"(\d+) (equivalent|gpu): (\S.*)", line)
        if match is None:
            raise SystemExit(f"no verdict: {line!r}; a line is `ID equivalent: why` or `ID gpu: why`")
        found[int(match[1])] = match[2], match[3]
    return found


def summary(output: Path, verdicts: Path | None) -> str:
    """What was caught, what survived, and the share that counts."""
    _, results = read(output)
    judged = verdicts_in(verdicts.read_text()) if verdicts else {}
    mutants = tried(results)
    survivors = [row for row in mutants if row["outcome"] not in CAUGHT]
    if unknown := judged.keys() - {row["id"] for row in survivors}:
        raise SystemExit(f"judged, and not among the survivors: {sorted(unknown)}")
    kinds = Counter(judged[row["id"]][0] if row["id"] in judged else "missed" for row in survivors)
    caught, asked = len(mutants) - len(survivors), len(mutants) - kinds["equivalent"] - kinds["gpu"]
    lines = [
        f"{len(mutants)} mutants ({len(results) - len(mutants)} more did not compile): {caught} caught, "
        f"{kinds['equivalent']} equivalent, {kinds['gpu']} that only a GPU can tell, {kinds['missed']} missed",
        f"caught of those that these tests could tell: {caught}/{asked}, {caught / max(asked, 1):.1%}",
        *(f"  {described(row)}; {': '.join(judged.get(row['id'], ('missed',)))}" for row in survivors),
    ]
    return "\n".join(lines)


def show(output: Path, root: Path) -> str:
    """The survivors as unified differences."""
    head, results = read(output)
    tree = Tree(root.resolve(), head["package"])
    if tree.digest() != head["sources"]:
        raise SystemExit(f"{output} is of other sources")
    survivors = {row["id"] for row in tried(results) if row["outcome"] not in CAUGHT}
    pieces = []
    for number, mutant in draw(tree, head["seed"]):
        if number in survivors:
            text = tree.text(mutant.path)
            sides = [side.splitlines() for side in (text, mutant.apply(text))]
            difference = difflib.unified_diff(*sides, mutant.path, f"mutant {number}", lineterm="", n=2)
            pieces.append("\n".join(difference))
    return "\n\n".join(pieces)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_run = commands.add_parser("run", help="draw mutants and try them")
    of_run.add_argument("--seed", type=int, required=True)
    of_run.add_argument("--count", type=int, default=120, help="mutants that compile (default: 120)")
    of_run.add_argument("--jobs", type=int, default=2, help="at once (default: 2)")
    of_run.add_argument("--output", type=Path, required=True, metavar="FILE", help="results; appended to if it exists")
    of_run.add_argument("--root", default=Path(__file__).parent.parent, help="the repository")
    of_run.add_argument("--package", default="cuda_tma")
    of_run.add_argument(
        "--pytest", default="-m 'not slow'", metavar="ARGS", help="more for pytest (default: %(default)s)"
    )
    for name, words in (("summary", "what was caught"), ("show", "the survivors, as differences")):
        other = commands.add_parser(name, help=words)
        other.add_argument("results", type=Path)
    commands.choices["summary"].add_argument("--verdicts", type=Path, metavar="FILE", help="on survivors, by hand")
    commands.choices["show"].add_argument("--root", type=Path, default=Path(__file__).parent.parent)
    given = parser.parse_args(arguments)
    if given.command == "run":
        run(given)
    else:
        print(summary(given.results, given.verdicts) if given.command == "summary" else show(given.results, given.root))


if __name__ == "__main__":
    main()
