"""The Python versions for which wheels are built, and the search for their executables."""

from __future__ import annotations

import os
import shutil
import subprocess

# The table [tool.cibuildwheel] of pyproject.toml lists the same versions of Python.
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")


def find_python(asked: str) -> str | None:
    """Return the executable of a Python version, or None if the machine does not have this version."""
    command = shutil.which(f"python{asked}") or shutil.which(asked)
    if command is None:
        return None
    # PYENV_VERSION selects the version for the shims of pyenv, which serve all versions.
    environ = os.environ | {"PYENV_VERSION": asked}
    asked_for = [command, "-c", "import sys; print(sys.executable)"]
    found = subprocess.run(asked_for, capture_output=True, text=True, env=environ)
    return found.stdout.strip() if found.returncode == 0 else None
