"""Run published programs of other runtimes below ``cuda-tma sanitize``, without a GPU and without a change.

The file published_programs.json lists the clones and the programs, with the text that each program must print, and the
classes and reasons of listed errors. A folder contains the clones, each with the name of its repository. Programs of
C++ need nvcc and curand's headers. The figures of each program become a row of published_results.json, from which
`write_evidence.py` makes a page.

Each Python program needs its runtime in the Python that runs this script.

Examples
--------
    python evaluation/run_published_programs.py FOLDER [--runtime cupy] [--only NAME] [--include FOLDER_OF_CURAND]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LISTED = Path(__file__).with_name("published_programs.json")
RESULTS = Path(__file__).with_name("published_results.json")
RUNTIMES = ("triton", "tilelang", "cute", "cupy", "numba", "core", "bindings", "cpp")
SECONDS = 1800
LIBRARY = ROOT / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"
NVCC = ("nvcc", "-lineinfo", "-cudart", "shared", "-w", "--expt-relaxed-constexpr")
USUAL = ("-std=c++17", "-O2", "-arch=sm_90a")
# Programs of long kernels have only PTX, because the simulator does not run the machine code.
ONLY_PTX = ("-gencode", "arch=compute_90a,code=compute_90a", "-DNDEBUG", "--expt-extended-lambda")
OPTIONS = {
    "cutlass": (*USUAL, "-I{cutlass}/include", "-I{cutlass}/tools/util/include", "-I{cutlass}/examples/common"),
    "cccl": (
        *USUAL,
        "-x",
        "cu",
        "-include",
        "{cccl}/libcudacxx/test/libcudacxx/force_include.h",
        "-I{cccl}/libcudacxx/include",
        "-I{cccl}/libcudacxx/test/support",
    ),
    "samples": (*USUAL, "-I{cuda-samples}/Common"),
    "flash-attention": (
        "-std=c++17",
        "-O2",
        *ONLY_PTX,
        "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED",
        "-DCUTLASS_ENABLE_GDC_FOR_SM90",
        "-I{flash-attention}/hopper",
        "-I{cutlass}/include",
    ),
    "thunderkittens": (
        "-std=c++20",
        "-O3",
        "--use_fast_math",
        *ONLY_PTX,
        "-DKITTENS_HOPPER",
        "-I{thunderkittens}/include",
        "-I{thunderkittens}/prototype",
        "-I{thunderkittens}/kernels/gemm/bf16_h100",
    ),
}
# RUNNERS maps the first word of a special command to the Python code that runs the remaining words.
RUNNERS = {
    "doctest": """
import cupy, doctest, numpy, sys
names = {"np": numpy, "numpy": numpy, "cp": cupy, "cupy": cupy}
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
found = doctest.testfile(sys.argv[1], module_relative=False, globs=names, optionflags=flags)
print(found)
sys.exit(bool(found.failed))
""",
    "tests": """
import importlib, sys, unittest
module = importlib.import_module(sys.argv[1])
for name, value in list(vars(module).items()):
    if name.startswith("test_") and callable(value):
        value()
found = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(module))
sys.exit(not found.wasSuccessful())
""",
    # The runner "call" imports a module and evaluates an expression in it, such as a call with small sizes, without the
    # benchmarks of Triton.
    "call": """
import importlib.util, os, sys
path, text = sys.argv[1:3]
sys.argv = [path]
sys.path.insert(0, os.path.dirname(path))
if "triton.testing" in open(path).read():
    import triton.testing
    class Omitted:
        def run(self, *_, **__):
            pass
    triton.testing.perf_report = lambda *_, **__: lambda _: Omitted()
name = os.path.basename(path).removesuffix(".py").replace("-", "_")
spec = importlib.util.spec_from_file_location(name, path)
module = sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
eval(text, vars(module))
""",
    "example": """
import pathlib, runpy, sys
import cuda.bindings
here = pathlib.Path(sys.argv[1])
root = next(each for each in here.parents if each.name == "cuda_bindings")
cuda.bindings.__path__.append(str(root / "cuda" / "bindings"))  # the helpers, which no wheel contains
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
""",
}


def build(words: list[str], clones: dict[str, str], folder: Path, include: list[str]) -> None:
    """Build a program of C++ as the program's users do."""
    (folder / "libcuda.so").unlink(missing_ok=True)
    (folder / "libcuda.so").symlink_to(LIBRARY)
    options = [each.format(**clones) for each in OPTIONS[words[0]]]
    given = [f"-I{each}" for each in include]
    subprocess.run([*NVCC, *options, *given, *words[1:], f"-L{folder}", "-lcuda", "-o", folder / "program"], check=True)


def name_of(program: dict[str, Any]) -> str:
    """Return the name of a program in tables: its command, without Python."""
    words = program.get("build", "").split()[1:] + program["run"].split(" ", 1)[1:]
    return " ".join(words).replace("{", "").replace("}", "")


def command_of(words: list[str], folder: Path) -> list[str]:
    if words[0] == "program":
        return [str(folder / "program"), *words[1:]]
    if words[0] in RUNNERS:
        return [sys.executable, "-c", RUNNERS[words[0]], *words[1:]]
    return [sys.executable, *words[1:]]


def row_of(document: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the figures of a program that ran."""
    coverage = document["coverage"]
    findings = [each for launch in document["launches"] for each in launch["findings"]]
    errors = sorted({each["kind"] for each in findings if each["severity"] == "error"})
    schedules = max((len(each["schedules"]) for each in document["launches"] if not each["skipped"]), default=0) or 1
    counts = {name: coverage[name] for name in ("judged", "skipped")}
    return {**counts, "schedules": schedules, "errors": errors, "seconds": round(seconds)}


def keep(name: str, row: dict[str, Any], path: Path = RESULTS) -> None:
    """Replace the row of a program in the file of results."""
    rows = {**(json.loads(path.read_text()) if path.exists() else {}), name: row}
    lines = (f"  {json.dumps(each)}: {json.dumps(rows[each])}" for each in sorted(rows))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def complaint(program: dict[str, Any], clones: dict[str, str], folder: Path, include: list[str]) -> str:
    """Run a program, and store its figures.

    Return the difference between the figures and the program's entry in the list, or an empty text.
    """
    compiling = 0
    if "build" in program:
        begun = time.monotonic()
        build(program["build"].format(**clones).split(), clones, folder, include)
        compiling = round(time.monotonic() - begun)
    document = folder / "out.json"
    command = command_of(shlex.split(program["run"].format(**clones)), folder)
    options = [f"--json={document}", *shlex.split(program.get("options", ""))]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "cuda_tma", "sanitize", *options, "--", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    row = row_of(json.loads(document.read_text()), time.monotonic() - begun)
    found = (done.returncode, row["errors"], program.get("prints", "") in done.stdout)
    expected = (program.get("status", 0), sorted(program.get("errors", {})), True)
    if found == expected:
        keep(name_of(program), {**row, "nvcc": compiling} if compiling else row)
        return ""
    return f"{found}, not {expected}\n{(done.stdout + done.stderr)[-2000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the clones")
    parser.add_argument("--runtime", action="append", help="only these runtimes (default: all)")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--include", action="append", default=[], help="folder of headers for the programs of C++")
    arguments = parser.parse_args()
    listed = json.loads(LISTED.read_text())
    clones = {name: str((arguments.folder / name).resolve()) for name in listed["clones"]}
    clones["here"] = str(LISTED.parent)
    wrong = 0
    for program in listed["programs"]:
        if arguments.only not in name_of(program) or program["runtime"] not in (arguments.runtime or RUNTIMES):
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            told = complaint(program, clones, Path(folder), arguments.include)
        wrong += bool(told)
        name = name_of(program)
        print(f"{'wrong' if told else 'right'}, {time.monotonic() - begun:.0f} s: {name} {told}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
