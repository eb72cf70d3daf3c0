"""Run published programs of other runtimes below ``cuda-tma sanitize``, without a GPU and without a change.

The file published_programs.json lists the clones and the programs, with the text that each program must print, and the
reasons of listed errors. A folder contains the clones, each with the name of its repository. Programs of C++ need nvcc
and curand's headers:

    python evaluation/run_published_programs.py FOLDER [--runtime cupy] [--include FOLDER_OF_CURAND]

Each Python program needs its runtime in the Python that runs this script.
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
SECONDS = 1800
LIBRARY = ROOT / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"
NVCC = ("nvcc", "-std=c++17", "-O2", "-arch=sm_90a", "-lineinfo", "-cudart", "shared", "-w", "--expt-relaxed-constexpr")
INCLUDES = {
    "cutlass": ("-I{cutlass}/include", "-I{cutlass}/tools/util/include", "-I{cutlass}/examples/common"),
    "cccl": (
        "-xcu",
        "-include",
        "{cccl}/libcudacxx/test/libcudacxx/force_include.h",
        "-I{cccl}/libcudacxx/include",
        "-I{cccl}/libcudacxx/test/support",
    ),
    "samples": ("-I{cuda-samples}/Common",),
}
# The first word of a command that is neither a program nor Python selects the code that runs the other words.
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
    options = [each.format(**clones) for each in INCLUDES[words[0]]]
    given = [f"-I{each}" for each in include]
    subprocess.run([*NVCC, *options, *given, words[1], f"-L{folder}", "-lcuda", "-o", folder / "program"], check=True)


def command_of(words: list[str], folder: Path) -> list[str]:
    if words[0] == "program":
        return [str(folder / "program"), *words[1:]]
    if words[0] in RUNNERS:
        return [sys.executable, "-c", RUNNERS[words[0]], *words[1:]]
    return [sys.executable, *words[1:]]


def complaint(program: dict[str, Any], clones: dict[str, str], folder: Path, include: list[str]) -> str:
    """Run a program. Return the difference from the program's entry in the list, or an empty text."""
    if "build" in program:
        build(program["build"].format(**clones).split(), clones, folder, include)
    document = folder / "out.json"
    command = command_of(program["run"].format(**clones).split(), folder)
    options = [f"--json={document}", *shlex.split(program.get("options", ""))]
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
    findings = [each for launch in json.loads(document.read_text())["launches"] for each in launch["findings"]]
    errors = sorted({each["kind"] for each in findings if each["severity"] == "error"})
    found = (done.returncode, errors, program.get("prints", "") in done.stdout)
    expected = (program.get("status", 0), program.get("errors", []), True)
    return "" if found == expected else f"{found}, not {expected}\n{(done.stdout + done.stderr)[-2000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the clones")
    parser.add_argument("--runtime", action="append", help="only these runtimes (default: all)")
    parser.add_argument("--include", action="append", default=[], help="folder of headers for the programs of C++")
    arguments = parser.parse_args()
    listed = json.loads(LISTED.read_text())
    clones = {name: str((arguments.folder / name).resolve()) for name in listed["clones"]}
    wrong = 0
    for program in listed["programs"]:
        if arguments.runtime and program["runtime"] not in arguments.runtime:
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            told = complaint(program, clones, Path(folder), arguments.include)
        wrong += bool(told)
        name = program.get("build", program["run"]).split()[1]
        print(f"{'wrong' if told else 'right'}, {time.monotonic() - begun:.0f} s: {name} {told}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
