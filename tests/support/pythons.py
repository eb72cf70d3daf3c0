"""The Pythons that wheels are made for, and those on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")  # as in pyproject.toml's [tool.cibuildwheel]


def find_python(asked: str) -> str | None:
    """Return a Python's own executable, by its version or by a path, or None if it does not exist here."""
    command = shutil.which(f"python{asked}") or shutil.which(asked)
    if command is None:
        return None
    # PYENV_VERSION is for pyenv's shims, which serve every version and need a choice.
    environ = os.environ | {"PYENV_VERSION": asked}
    asked_for = [command, "-c", "import sys; print(sys.executable)"]
    found = subprocess.run(asked_for, capture_output=True, text=True, env=environ)
    return found.stdout.strip() if found.returncode == 0 else None
