"""TileLang without a GPU: its NVRTC backend, up to PTX, with a driver that gives launches to the session."""

from __future__ import annotations

import os
from typing import Any

from ..patches import Patches
from . import compiler, timing

__all__ = ["install"]


def install(session: Any) -> Patches:
    """Let TileLang's kernels run on the simulated GPU.

    Parameters
    ----------
    session : Session
        Launches go to it.

    Returns
    -------
    Patches
        They can be undone.
    """
    from tilelang import env

    patches = Patches()
    folder = os.path.join(str(env.TILELANG_CACHE_DIR), "cuda_tma")  # it has PTX in the place of machine code
    env.TILELANG_CACHE_DIR = folder
    compiler.install(patches, session.device.compute_capability)
    timing.install(patches, session)
    return patches
