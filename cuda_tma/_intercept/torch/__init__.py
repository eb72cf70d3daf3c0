"""The adapter of torch for ``device="cuda"`` without a GPU.

Tensors are in this machine's memory, and report the simulated GPU.

The operators of torch run on the CPU. A kernel on the simulator accesses the memory of these tensors.
"""

from __future__ import annotations

from typing import Any

from ..patches import Patches
from . import factories, gpu, propagation, refused, tensors

__all__ = ["install"]


def install(session: Any) -> Patches:
    """Make torch use the simulated GPU of a session.

    Parameters
    ----------
    session : Session
        The session. The session's device determines the compute capability and the addresses of tensors.

    Returns
    -------
    Patches
        The patches, by which the caller can undo the change.
    """
    patches = Patches()
    tensors.install(patches, session.device.address)
    factories.install(patches)
    gpu.install(patches, session)
    refused.install(patches, session)
    propagation.install(patches)
    return patches
