"""Run every fuzzer at the same time for a few seconds, as ``make check`` does.

The script ends with status 1 after a fault.

An example is ``python evaluation/fuzzing/smoke.py --seconds 6 --seed 5``. To fuzz for hours, run the lines of
``COMMANDS``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
# The counts are so large that each fuzzer except the last runs until its time limit.
COMMANDS = {
    "races": ["fuzz_races.py", "--count", "900000", "--workers", "1"],
    "arithmetic": ["fuzz_arithmetic.py", "--count", "900000", "--workers", "1"],
    "commands, texts, PTX and launch files": ["fuzz_commands.py", "--count", "900000"],
    "driver calls": ["fuzz_driver.py", "--count", "900000", "--calls", "300", "--workers", "1"],
    "pipelines": ["fuzz_pipelines.py", "--count", "4", "--workers", "1", "--output", os.devnull],
}
PATIENCE_SECONDS = 60.0  # After its time limit, a fuzzer has one more minute to end.


def main() -> int:
    """Run the fuzzers. Print the last line of each fuzzer, or all its lines after a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86_400, help="default: another one each day")
    options = parser.parse_args()
    paths = os.pathsep.join([str(FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment, running = {**os.environ, "PYTHONPATH": paths}, {}
    for name, (script, *arguments) in COMMANDS.items():
        command = [sys.executable, str(FOLDER / script), *arguments, "--seed", str(options.seed)]
        command += ["--seconds", str(options.seconds)] if name != "pipelines" else []
        running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                         env=environment)  # fmt: skip
    faults = 0
    for name, child in running.items():
        try:
            output, _ = child.communicate(timeout=options.seconds + PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            output = f"{child.communicate()[0]}\nit does not end"
        lines = output.strip().splitlines() or [""]
        faults += bool(child.returncode)
        print(f"{name}: {os.linesep.join(lines) if child.returncode else lines[-1]}", flush=True)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
