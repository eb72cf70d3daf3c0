"""The compiler of Triton up to PTX. The simulator needs no machine code, and ptxas takes much of the time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

from ..patches import Patches

__all__ = ["install"]


def install(patches: Patches, backend: Any) -> None:
    """Make the stage for machine code return the PTX. Store the resulting kernels separately in Triton's cache."""
    from triton.compiler import ASTSource

    patches.replace(backend, "add_stages", _stages(backend.add_stages))
    patches.replace(backend, "hash", _hash(backend.hash))
    patches.replace(ASTSource, "hash", _hash_with_file(ASTSource.hash))


def _stages(own: Callable[..., None]) -> Callable[..., None]:
    def add_stages(backend: Any, stages: dict[str, Any], *rest: Any) -> None:
        own(backend, stages, *rest)
        stages["cubin"] = lambda source, metadata: source.encode()

    return add_stages


def _hash(own: Callable[..., str]) -> Callable[..., str]:
    return lambda backend: f"{own(backend)}-ptx"


def _hash_with_file(own: Callable[..., str]) -> Callable[..., str]:
    """Store equal kernels of two files separately, because the PTX in Triton's cache contains the name of the source
    file.
    """

    def hash_with_file(source: Any) -> str:
        code = getattr(getattr(source.fn, "fn", None), "__code__", None)
        file = os.path.abspath(code.co_filename) if code is not None else ""
        return hashlib.sha256(f"{own(source)}-{file}".encode("utf-8", "surrogateescape")).hexdigest()

    return hash_with_file
