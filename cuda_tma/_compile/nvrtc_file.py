"""The identity of the NVRTC that a compilation would use.

The module does not load the library, because a load takes some 12 ms.

cuda.bindings chooses the file by its own rules from the installed packages and the environment. Therefore, after a
load, this module records NVRTC's file together with the packages and the environment. The record is valid while the
packages and the environment do not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys

from cuda.bindings import __version__ as _bindings_version

from .disk_cache import DiskCache
from .nvrtc import load

__all__ = ["identity_of", "loaded_nvrtc", "note_nvrtc", "noted_nvrtc"]

_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")


def identity_of(path: str) -> str | None:
    """Return a file's path, its size and the time of its last change, or None if the file does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def noted_nvrtc(cache: DiskCache) -> str | None:
    """Return the recorded identity of NVRTC if the environment is unchanged."""
    try:
        known, identity = json.loads(cache.read(_note()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    is_same = known == _installed() and isinstance(identity, str)
    return identity if is_same and identity == identity_of(identity.rsplit(" ", 2)[0]) else None


def loaded_nvrtc() -> str | None:
    """Return the identity of the NVRTC that this process has loaded or loads now.

    Return None if the file of NVRTC is unknown.
    """
    load()
    path = _path()
    return identity_of(path) if path else None


def _path() -> str | None:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    # The function load_nvidia_dynamic_lib() loads the same NVRTC as cuda.bindings, and loads it only once.
    return load_nvidia_dynamic_lib("nvrtc").abs_path


def note_nvrtc(cache: DiskCache, identity: str) -> None:
    """Record the identity of NVRTC for other processes. Raise OSError if the record cannot be written."""
    cache.write(_note(), json.dumps([_installed(), identity]).encode())


def _note() -> str:
    """Return the name of the record's file. Each environment has its own file."""
    known = [sys.prefix, *map(os.environ.get, _VARIABLES)]
    return f"nvrtc-{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]}.json"


def _installed() -> list[object]:
    """Return facts that change when a package is installed or removed."""
    return [_bindings_version, *([folder, _changed(folder)] for folder in sys.path if folder.endswith("-packages"))]


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
