"""The function that reads a compiled kernel from disk, or compiles it. The function needs no driver."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress

from .._version import __version__
from .compiled import Compiled
from .disk_cache import DiskCache, cache_folder
from .headers import headers_of
from .nvrtc import Request, run
from .nvrtc_file import loaded_nvrtc, note_nvrtc, noted_nvrtc

__all__ = ["kept_or_compiled"]


def kept_or_compiled(asked: Request) -> Compiled:
    """Return the kernel from disk, or compile the kernel and write it to disk."""
    headers = headers_of(asked.source, asked.file, asked.options)
    if headers is None:
        return run(asked)
    try:
        disk = DiskCache(cache_folder())
    except RuntimeError as error:  # The user has no home folder.
        _warn(error)
        return run(asked)
    key = ""
    for nvrtc in _nvrtcs(disk):
        key = _key(asked, headers, nvrtc)
        if found := disk.get(key):
            return found
    compiled = run(asked)
    # The cache does not keep a kernel if a header changed during the compilation.
    if key and headers == headers_of(asked.source, asked.file, asked.options):
        try:
            disk.put(key, compiled)
        except OSError as error:
            _warn(error)
    return compiled


def _nvrtcs(disk: DiskCache) -> Iterator[str]:
    """Yield the recorded NVRTC, which need not be loaded. Then yield the loaded NVRTC if the two differ."""
    noted = noted_nvrtc(disk)
    if noted:
        yield noted
    loaded = loaded_nvrtc()
    if loaded is None or loaded == noted:
        return
    # An error needs no warning here, because writing the kernel to the same disk causes a warning.
    with suppress(OSError):
        note_nvrtc(disk, loaded)
    yield loaded


def _key(asked: Request, headers: Mapping[str, bytes], nvrtc: str) -> str:
    """Return the digest of everything that the kernel depends on, as the key of the kernel."""
    digests = sorted((path, hashlib.sha256(content).hexdigest()) for path, content in headers.items())
    return hashlib.sha256(json.dumps([__version__, asked, digests, nvrtc]).encode()).hexdigest()


def _warn(error: Exception) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept ({error}), so each process compiles them again; set the environment variable "
        "CUDA_TMA_CACHE_DIR to another folder, or pass compile(..., cache=False) to keep none",
        RuntimeWarning,
        stacklevel=4,
    )
