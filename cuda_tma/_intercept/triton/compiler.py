"""Triton's compiler up to PTX: the simulator needs no machine code, and ptxas takes much of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..patches import Patches

__all__ = ["install"]


def install(patches: Patches, backend: Any) -> None:
    """Let the stage that makes machine code return the PTX; keep such kernels apart in Triton's cache."""
    patches.replace(backend, "add_stages", _stages(backend.add_stages))
    patches.replace(backend, "hash", _hash(backend.hash))


def _stages(own: Callable[..., None]) -> Callable[..., None]:
    def add_stages(backend: Any, stages: dict[str, Any], *rest: Any) -> None:
        own(backend, stages, *rest)
        stages["cubin"] = lambda source, metadata: source.encode()

    return add_stages


def _hash(own: Callable[..., str]) -> Callable[..., str]:
    return lambda backend: f"{own(backend)}-ptx"
