"""Run programs that misuse the driver library of ``cuda-tma sanitize``.

Each run must end in time, and must print a last sentence.

The cases are very many launches, allocations of 100 GiB, damaged fat binaries, and calls of every entry with null
pointers. A case fails if the command has a traceback or no last sentence, or exceeds the limits. The program itself may
fail.

The script needs nvcc, and no GPU. 100,000 launches take 12 minutes.

Examples
--------
    python evaluation/fuzzing/hostile_programs.py [--launches 100000] [--damaged 200] [--seed 1]
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("hostile_program.cu")
LIBRARY = ROOT / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"
_MAGIC = struct.pack("<I", 0xBA55ED50)
SECONDS, LAUNCH_SECONDS = 120, 3600
STATUSES = (0, 1, 2, 3)
# The program calls each function of the driver library with null pointers, with or without an earlier call of cuInit.
_NULLS = """
import ctypes, sys
library = ctypes.CDLL("libcuda.so.1")
for name in sys.stdin.read().split():
    print("next:", name, flush=True)
    getattr(library, name)(*[ctypes.c_void_p(0)] * 12)
print("next: none")
"""
# The function returns a structure, so its caller passes the address of the result as a hidden argument.
_BY_VALUE = "cudaCreateChannelDesc"
_ENTRY = re.compile(r"^(?:cu[A-Z]|cuda[A-Z]|nvrtc[A-Z]|nvJitLink[A-Z])\w*$")


def entries(library: Path) -> list[str]:
    """Return the names of the entries that a library exports."""
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    names = [line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()]
    return sorted(name for name in set(names) if _ENTRY.match(name) and name != _BY_VALUE)


def damaged(program: bytes, seed: int) -> bytes:
    """Return a program with changed bytes in its fat binary."""
    chosen, changed = random.Random(seed), bytearray(program)
    at = program.index(_MAGIC)
    _, _, header, size = struct.unpack_from("<IHHQ", program, at)
    # The mutation changes bytes anywhere in the fat binary, or only in its headers.
    extent = header + size if chosen.random() < 0.5 else 128
    for _ in range(chosen.choice([1, 4, 64])):
        changed[at + chosen.randrange(extent)] = chosen.randrange(256)
    return bytes(changed)


def complaint(command: list[str], seconds: float, folder: Path, given: str = "") -> str:
    """Run a program below the command. Return the reason why the end of the program is wrong, or an empty text."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole = [sys.executable, "-m", "cuda_tma", "sanitize", "--schedules", "1", "--", *command]
    try:
        ended = subprocess.run(
            whole, cwd=folder, env=environment, input=given, capture_output=True, text=True, errors="replace",
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it does not end in {seconds} s"
    printed = ended.stdout + ended.stderr
    if "Traceback" in printed:
        return printed[-500:]
    if ended.returncode not in STATUSES:
        return f"status {ended.returncode}: {printed[-300:]}"
    if "next:" in printed and "next: none" not in printed:
        return f"it ends at {printed.rpartition('next: ')[2].split()[0]}"
    return "" if "cuda-tma:" in printed else "there is no sentence"


def cases(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Run the cases. Yield the name and the complaint of each case."""
    program = folder / "program"
    build = ["nvcc", "-arch=sm_90a", "-lineinfo", "-cudart", "shared", str(SOURCE), "-o", str(program)]
    subprocess.run(build, check=True)
    yield "allocations of 100 GiB", complaint([str(program), "memory"], SECONDS, folder)
    names = " ".join(entries(LIBRARY))
    for begin in ("", "cuInit "):
        told = complaint(["python", "-c", _NULLS], SECONDS, folder, begin + names)
        yield f"all entries with null pointers{' after cuInit' * bool(begin)}", told
    whole = program.read_bytes()
    for number in range(arguments.damaged):
        seed = arguments.seed + number
        other = folder / "damaged"
        other.write_bytes(damaged(whole, seed))
        other.chmod(0o755)
        yield f"damaged fat binary, seed {seed}", complaint([str(other)], SECONDS, folder)
    if arguments.launches:
        command = [str(program), "launches", str(arguments.launches)]
        yield f"{arguments.launches} launches", complaint(command, LAUNCH_SECONDS, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--damaged", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    count, wrong, begun = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, told in cases(Path(folder), arguments):
            count += 1
            wrong += bool(told)
            if told:
                print(f"{name}: {told}", flush=True)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"{count} cases, {wrong} wrong, {time.monotonic() - begun:.0f} s, at most {most} MB in a process")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
