"""Tests of tiles of every type, through the typed maps of the device header."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command):
    """Return the last line that a separate process prints, because the process may hang or lose its context."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_tiles_contain_and_copy_their_elements():
    said = run("-m", "tests.gpu.typed_tiles")
    found = re.fullmatch(r"ok: (7\d) tiles, 12 in parts; on the simulator the first of each, (\d+) the same", said)
    assert found and int(found[2]) == int(found[1]) + 12, said
