"""Tests of the limits on the time and the memory of a compilation."""

from __future__ import annotations

import subprocess
import sys

import pytest

TAKES_MEMORY = """
from cuda_tma._command import compile_limit
compile_limit.COMPILER_BYTES = 64 << 20
taken = []
with compile_limit.limited(SECONDS):
    while len(taken) < MOST:
        taken.append(bytearray(b"x" * (1 << 20)))
print("ended")
"""


@pytest.mark.parametrize(
    ("seconds", "most", "status", "printed"),
    [
        (60, 10**6, 3, "cuda-tma: the compilation of the kernel needs more than 0 GiB of memory\n"),
        (60, 8, 0, "ended\n"),
    ],
)
def test_memory(seconds, most, status, printed):
    code = TAKES_MEMORY.replace("SECONDS", str(seconds)).replace("MOST", str(most))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (status, printed)
