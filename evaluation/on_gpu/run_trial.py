"""Compare memory after launches on the GPU and on the simulator, for programs of Triton, CuPy, C++ and this package.

Each program runs once without the command, and once below ``cuda-tma sanitize --on-gpu``, which records the checked
launches. Then the script replays the recordings, and compares the reports. The script prints a table, and writes the
table with the documents into a folder.

Examples
--------
    python evaluation/on_gpu/run_trial.py --output build/on_gpu
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "cuda_tma", "sanitize"]
COLUMNS = ("program", "launches", "judged", "equal", "within", "differs", "not compared", "skipped", "errors",
           "replayed", "ms a launch", "s judging", "s alone", "s judged")  # fmt: skip
MOST_SECONDS = 500
TESTS = [f"tests/gpu/test_{name}.py" for name in ("header_bulk", "header_cluster", "wgmma", "products", "tiles")]


class Program(NamedTuple):
    """A program of the trial, with its command.

    Attributes
    ----------
    name : str
    command : sequence of str
    """

    name: str
    command: Sequence[str]


def programs(folder: Path) -> list[Program]:
    """Return the programs of the trial, after compiling those of C++."""
    found = [Program(name, [sys.executable, str(HERE / f"{name}_kernels.py")]) for name in ("triton", "cupy", "own")]
    found.append(Program("compiled", [sys.executable, str(HERE / "torch_compiled.py")]))
    found.append(Program("tests_gpu", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]))
    if shutil.which("nvcc"):
        target = "arch=compute_90a,code=[compute_90a,sm_90a]"
        for runtime in ("static", "shared"):
            made = folder / f"kernels_{runtime}"
            options = ["-std=c++17", "-lineinfo", "-gencode", target, "-cudart", runtime]
            subprocess.run(["nvcc", *options, str(HERE / "kernels.cu"), "-o", str(made)], check=True)
            found.append(Program(f"cpp_{runtime}", [str(made)]))
    return found


def run(command: Sequence[str], log: Path) -> float:
    """Run a command, append its output to a log, and return the seconds that it took."""
    begun = time.perf_counter()
    with open(log, "a") as file:
        print("$", *command, file=file, flush=True)
        try:
            status = subprocess.run(command, stdout=file, stderr=file, timeout=MOST_SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            status = -1
        print("status", status, file=file)
    return time.perf_counter() - begun


def tried(program: Program, folder: Path, schedules: int) -> dict[str, Any]:
    """Run a program without the command, below the command, and from its recording. Return a row of the table."""
    path, log = folder / program.name, folder / f"{program.name}.log"
    alone = run(program.command, log)
    document, recording, again = (path.with_suffix(end) for end in (".json", ".launches", ".replayed.json"))
    options = ["--on-gpu", "--schedules", str(schedules), "--configurations", "64", "--time-limit", "20"]
    judged = run([*COMMAND, *options, "--json", str(document), "--record", str(recording), "--", *program.command], log)
    run([*COMMAND, str(recording), "--time-limit", "20", "--json", str(again)], log)
    return {"program": program.name, "s alone": round(alone, 1), "s judged": round(judged, 1), **_row(document, again)}


def _row(document: Path, again: Path) -> dict[str, Any]:
    if not document.exists():
        return {}
    found = json.loads(document.read_text("utf-8"))
    launches = [each for each in found["launches"] if not each["skipped"] and each["grid"]]
    kernels = [kernel for table in found["gpu"] for kernel in table["kernels"]]
    results = Counter((each["hardware"] or "").partition(":")[0] for each in launches)
    captured = sum(each["judged"] for each in kernels)
    return {
        "launches": sum(each["launches"] for each in kernels),
        "judged": len(launches),
        "equal": results["equal"],
        "within": results["within the bound"],
        "differs": results["differs"],
        "not compared": results["not compared"],
        "skipped": sum(each["launches"] for each in kernels if each["reason"]),
        "errors": found["coverage"]["errors"],
        "replayed": _same(launches, again),
        "ms a launch": round(sum(each["nanoseconds"] for each in kernels) / 1e6 / max(captured, 1), 1),
        "s judging": round(sum(each["seconds"] for each in launches) / max(len(launches), 1), 2),
    }


def _same(launches: list[dict[str, Any]], again: Path) -> str:
    """Return the number of launches whose second report equals the first report, apart from the time."""
    if not again.exists():
        return "no"
    replayed = json.loads(again.read_text("utf-8"))["launches"]
    pairs = zip(launches, replayed, strict=False)
    same = sum({**one, "seconds": 0} == {**other, "seconds": 0} for one, other in pairs)
    return f"{same} of {len(replayed)}"


def main() -> None:
    """Run the programs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("build/on_gpu"), help="the folder (default: build/on_gpu)")
    parser.add_argument("--schedules", type=int, default=2, help="schedules of each launch (default: 2)")
    parser.add_argument("--only", nargs="*", help="names of programs")
    arguments = parser.parse_args()
    folder = arguments.output.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in programs(folder) if not arguments.only or each.name in arguments.only]
    with ThreadPoolExecutor() as pool:
        rows = [*pool.map(lambda each: tried(each, folder, arguments.schedules), chosen)]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(str(row.get(name, "")) for name in COLUMNS) + " |" for row in rows]
    print("\n".join(lines))
    (folder / "table.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
