"""Which NVRTC a compilation would use, told without loading it, which takes some 12 ms.

Which file cuda.bindings takes depends on what is installed and on the environment, in ways that are its own. So when
NVRTC was loaded, its file is noted, with all of that; where the same holds again, so does the note.
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
    """A file by path, size and time of its last change; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def noted_nvrtc(cache: DiskCache) -> str | None:
    """The identity that was noted last, if all is as it was then."""
    try:
        known, identity = json.loads(cache.read(_note()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    is_same = known == _installed() and isinstance(identity, str)
    return identity if is_same and identity == identity_of(identity.rsplit(" ", 2)[0]) else None


def loaded_nvrtc() -> str | None:
    """The identity of the NVRTC that this process has loaded, or loads now; None if its file is not known."""
    load()
    path = _path()
    return identity_of(path) if path else None


def _path() -> str | None:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return load_nvidia_dynamic_lib("nvrtc").abs_path  # cuda.bindings' own way to it: it is loaded once


def note_nvrtc(cache: DiskCache, identity: str) -> None:
    """Note it for other processes. OSError if that cannot be written."""
    cache.write(_note(), json.dumps([_installed(), identity]).encode())


def _note() -> str:
    """The name of the note: one for each environment."""
    known = [sys.prefix, *map(os.environ.get, _VARIABLES)]
    return f"nvrtc-{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]}.json"


def _installed() -> list[object]:
    """What changes when a package is installed or removed."""
    return [_bindings_version, *([folder, _changed(folder)] for folder in sys.path if folder.endswith("-packages"))]


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
