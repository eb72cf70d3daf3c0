"""The adapter of TileLang. TileLang's NVRTC backend compiles to PTX, and a replaced driver passes launches to the
session.
"""

from __future__ import annotations

import os
from typing import Any

from ..patches import Patches
from . import compiler, timing

__all__ = ["install"]


def install(session: Any) -> Patches:
    """Make TileLang's kernels run on the simulated GPU of a session.

    Parameters
    ----------
    session : Session
        The session that runs the launches.

    Returns
    -------
    Patches
        The patches, by which the caller can undo the change.
    """
    from tilelang import env

    patches = Patches()
    # Kernels in this folder of the cache are PTX, and not machine code.
    folder = os.path.join(str(env.TILELANG_CACHE_DIR), "cuda_tma")
    env.TILELANG_CACHE_DIR = folder
    compiler.install(patches, session.device.compute_capability)
    timing.install(patches, session)
    return patches
