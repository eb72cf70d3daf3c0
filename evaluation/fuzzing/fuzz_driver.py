"""Call the package's driver library in random sequences, with right and wrong arguments, and compare it with a model.

``python fuzz_driver.py --count 100 --seed 1`` runs each number as ``cuda-tma sanitize -- python driver_calls.py``. A
fault is a wrong status or wrong bytes of a call, a signal, a traceback, or an undocumented status of the command.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLS = Path(__file__).parent / "driver_calls.py"
SECONDS = 120.0  # A sequence has a time limit of two minutes.
DONE = re.compile(r"^(\d+) calls, 0 faults$", re.M)


def fault_of(number: int, calls: int) -> str:
    """Run a sequence in a separate process. Return the fault of the sequence, or an empty text."""
    command = [sys.executable, "-m", "cuda_tma", "sanitize", "--", sys.executable, str(CALLS), str(number), str(calls)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
    try:
        ran = subprocess.run(command, capture_output=True, timeout=SECONDS, env=environment, errors="replace")
    except subprocess.TimeoutExpired:
        return f"it takes more than {SECONDS:.0f} seconds"
    if "Traceback" in ran.stderr or "an error of the simulator itself" in ran.stderr:
        return ran.stderr[-1500:]
    if ran.returncode not in (0, 1, 3):
        return f"the status is {ran.returncode}: {ran.stdout[-500:]} {ran.stderr[-500:]}"
    return "" if DONE.search(ran.stdout) else f"{ran.stdout[-1500:]} {ran.stderr[-500:]}"


def main() -> int:
    """Run the sequences of a range of numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="number of sequences")
    parser.add_argument("--calls", type=int, default=1000, help="number of calls of a sequence")
    parser.add_argument("--seed", type=int, default=1, help="the first sequence is number 1,000,000 times this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no sequence after this time")
    options = parser.parse_args()
    first, until, faults, done = options.seed * 1_000_000, time.monotonic() + options.seconds, 0, 0
    with ThreadPoolExecutor(options.workers) as pool:
        for begun in range(first, first + options.count, options.workers):
            numbers = range(begun, min(begun + options.workers, first + options.count))
            for number, fault in zip(numbers, pool.map(partial(fault_of, calls=options.calls), numbers), strict=True):
                done, faults = done + 1, faults + bool(fault)
                if fault:
                    print(f"{number}: {fault}", flush=True)
            if time.monotonic() > until:
                break
    print(f"{done} sequences of {options.calls} calls, {faults} with a fault")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
