"""Run ``cuda-tma`` with hostile command lines (``hostile_inputs.py``), and list the command lines with a wrong result.

``python fuzz_commands.py --count 98000 --seed 1`` calls the command's entry function in worker processes of 1 GiB of
address space, with 12 seconds for each input. ``--separate 2000`` runs 2,000 more inputs as separate commands under the
same limits. ``--only 1:4711`` runs one input (seed and number) and prints its outcome. A result is wrong if it is a
traceback, an undocumented status or a long error message, or if the command opens a file that the input does not name.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from cuda_tma._compile.disk_cache import cache_folder  # noqa: E402
from evaluation.fuzzing.hostile_inputs import Input, made  # noqa: E402

MEMORY_BYTES, CPU_SECONDS, WALL_SECONDS = 1 << 30, 12, 120
STATUSES = (0, 1, 2, 3)
# The folder /dev/shm is in memory, so files in it are fast.
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_BATCH = 400  # One worker process runs 400 inputs.
_COMPLAINT_CHARACTERS, _OUTPUT_CHARACTERS = 1 << 16, 64 << 20
_PACKAGES = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), "/usr/lib", *filter(None, sys.path))
_OWN = (str(ROOT), *_PACKAGES, str(cache_folder()), "/proc/self/maps", os.devnull)


class Outcome(NamedTuple):
    """The result of an input, whose `fault` is empty if the result is right."""

    index: int
    family: str
    status: int | str
    fault: str
    seconds: float


# ---- one input, in this process ----

_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], (str, bytes)):
        _opened.append(os.path.realpath(os.fsdecode(arguments[0])))


def prepare() -> None:
    """Import the modules of a command, limit this process, and record the files that the process opens."""
    from cuda_tma import simulate
    from cuda_tma._command import cli

    assert simulate
    # The parser is built only once, because building it takes longer than most commands.
    parser = cli.parser(cli._COMMANDS)
    cli.parser = lambda _: parser
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.addaudithook(_note)


@contextlib.contextmanager
def folder_of(given: Input, parent: str) -> Iterator[str]:
    """Make a working directory with the input's files, pipes, links and folders, next to a folder of secrets."""
    place = os.path.join(parent, "work")
    for name in ("work/src", "work/ptx", "work/folder", "secret"):
        os.makedirs(os.path.join(parent, name), exist_ok=True)
    for name in ("secret/a.cu", "work/src/a.cu", "work/a.cu"):
        Path(parent, name).write_text("a line\n" * 3)
    for name in ("pipe", "pipe.npy"):
        os.mkfifo(os.path.join(place, name))
    for name, target in {"link.cu": "secret/a.cu", "linked": "secret"}.items():
        os.symlink(os.path.join(parent, target), os.path.join(place, name))
    for name in ("zero.cu", "zero.npy", "zero.txt"):
        os.symlink("/dev/zero", os.path.join(place, name))
    for name, data in given.files.items():
        Path(place, name).write_bytes(data)
    before = os.getcwd()
    os.chdir(place)
    try:
        yield place
    finally:
        os.chdir(before)
        shutil.rmtree(place)


def outcome(given: Input, index: int, parent: str) -> Outcome:
    """Call the entry function of the command with an input, and return the outcome."""
    global _opened
    from cuda_tma._command import cli

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=errors) for errors in ("strict", "backslashreplace"))
    standard = sys.stdin, sys.stdout, sys.stderr
    begun, raised = time.process_time(), ""
    with folder_of(given, parent) as place:
        sys.stdin = io.TextIOWrapper(io.BytesIO(given.standard_input), "utf-8")
        sys.stdout, sys.stderr, _opened = out, err, []
        try:
            status: int | str = cli.main(list(given.arguments))
        except BaseException:
            status, raised = "raised", traceback.format_exc()
        finally:
            opened, _opened = _opened, None
            sys.stdin, sys.stdout, sys.stderr = standard
        strange = sorted({path for path in opened if not _is_named(path, given, place)})
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err) if stream.flush() is None]
    fault = fault_of(status, raised, *texts, strange)
    return Outcome(index, given.family, status, fault, round(time.process_time() - begun, 3))


def _is_named(path: str, given: Input, place: str) -> bool:
    if path.startswith((os.path.join(os.path.realpath(place), ""), *_OWN)):
        return True
    words = [word for argument in given.arguments for word in (argument, argument.partition("=")[2])]
    return any(path == (real := os.path.realpath(word)) or path.startswith(f"{real}/") for word in words if word)


def fault_of(status: int | str, raised: str, out: str, err: str, strange: list[str]) -> str:
    """Return the fault of a result, or an empty string if the result is right."""
    if raised:
        return raised
    if "an error of the simulator itself" in out + err:
        return f"the simulator fails: {err[-2000:]}"
    if "Traceback (most recent call last)" in out + err:
        return f"a traceback is printed: {err[-2000:]}"
    if "Warning: " in err:
        return f"a warning of Python is printed: {err[:2000]}"
    if status not in STATUSES:
        return f"the status is {status}"
    if strange:
        return f"it opens {strange[:5]}"
    if (status == 2 or (status == 3 and not out)) and not err.startswith("cuda-tma: "):
        return f"status {status} without a sentence: {err[:200]!r}"
    if len(err) > _COMPLAINT_CHARACTERS or len(out) > _OUTPUT_CHARACTERS:
        return f"it prints {len(out)} and {len(err)} characters"
    if "\x1b" in err or ("\x1b" in out):
        return "an escape character reaches the terminal"
    return ""


def worker(seed: int, first: int, stop: int) -> None:
    """Run inputs in order, and print a line before and after each input.

    A signal ends a process that exceeds a limit.
    """
    prepare()
    with tempfile.TemporaryDirectory(dir=_MEMORY) as parent:
        for index in range(first, stop):
            print(f"begin {index}", flush=True)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
            print(json.dumps(outcome(made(seed, index), index, parent)), flush=True)


# ---- many inputs ----


def in_workers(seed: int, first: int, stop: int) -> Iterator[Outcome]:
    """Run inputs in worker processes, one input at a time. The end of a worker process is also a result."""
    while first < stop:
        end = min(first + _BATCH, stop)
        command = [sys.executable, __file__, "--worker", f"{seed}:{first}:{end}"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            current, is_done = first, True
            for line in process.stdout:
                if line.startswith("begin "):
                    current, is_done = int(line[6:]), False
                else:
                    yield Outcome(*json.loads(line))
                    is_done = True
        if process.returncode or not is_done:
            yield Outcome(current, made(seed, current).family, "killed", _death(process.returncode), CPU_SECONDS)
        first = current + 1


def _death(code: int) -> str:
    reasons = {-signal.SIGPROF: f"more than {CPU_SECONDS} s of CPU", -signal.SIGALRM: f"more than {WALL_SECONDS} s"}
    return reasons.get(code, f"its process ended with {code}")


def separate(seed: int, index: int, parent: str) -> Outcome:
    """Run an input as a separate command."""
    given = made(seed, index)
    command = [sys.executable, "-m", "cuda_tma", *given.arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    begun = time.monotonic()
    with folder_of(given, parent) as place:
        try:
            done = subprocess.run(
                command, input=given.standard_input, capture_output=True, cwd=place, env=environment,
                preexec_fn=limit, timeout=WALL_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(index, given.family, "killed", f"more than {WALL_SECONDS} s", WALL_SECONDS)
        except OSError as error:  # Linux limits an argument of a command to 128 KiB.
            return Outcome(index, given.family, "not started", "" if error.errno == errno.E2BIG else str(error), 0.0)
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    fault = fault_of(done.returncode, "", out, err, [])
    return Outcome(index, given.family, done.returncode, fault, round(time.monotonic() - begun, 3))


def all_outcomes(arguments: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the results of workers, and then the results of separate commands, whose numbers follow."""
    stop = arguments.first + arguments.count
    yield from in_workers(arguments.seed, arguments.first, stop)
    with tempfile.TemporaryDirectory(dir=_MEMORY) as parent:
        for index in range(stop, stop + arguments.separate):
            yield separate(arguments.seed, index, parent)


def run(arguments: argparse.Namespace) -> int:
    """Run all inputs, print each fault, and print a summary."""
    counts: Counter[str] = Counter()
    faults, slowest, begun = 0, Outcome(-1, "", 0, "", 0.0), time.monotonic()
    for number, found in enumerate(all_outcomes(arguments), 1):
        counts[f"{found.family}: {found.status}"] += 1
        slowest = max(slowest, found, key=lambda each: each.seconds)
        if found.fault:
            faults += 1
            print(f"--- {arguments.seed}:{found.index} ({found.family})\n{found.fault.rstrip()}", flush=True)
        if number % 1000 == 0:
            print(f"{number} inputs, {faults} faults, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        if time.monotonic() - begun > arguments.seconds:
            break
    for name, count in sorted(counts.items()):
        print(f"{count:7} {name}")
    print(f"{sum(counts.values())} inputs, {faults} faults; the slowest, {slowest.index}, {slowest.seconds} s")
    return 1 if faults else 0


def only(seed: int, index: int) -> None:
    """Run one input in this process, and print the input and its result."""
    given = made(seed, index)
    print(given.as_json()[:4000])
    prepare()
    with tempfile.TemporaryDirectory(dir=_MEMORY) as parent:
        found = outcome(given, index, parent)
    print(found.status, found.seconds, found.fault, sep="\n")


def main() -> int:
    """Read the command line, and run the inputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no input after this time")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--separate", type=int, default=0, metavar="N", help="inputs that are commands of their own")
    parser.add_argument("--only", metavar="SEED:NUMBER")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(*map(int, arguments.worker.split(":")))
        return 0
    if arguments.only:
        only(*map(int, arguments.only.split(":")))
        return 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
