"""``device="cuda"`` without a GPU: tensors in this machine's memory that report the simulated GPU.

Operators of torch run on the CPU. A kernel accesses the same memory.
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
        The session, whose device has the compute capability and the addresses of tensors.

    Returns
    -------
    Patches
        The patches, which can be undone.
    """
    patches = Patches()
    tensors.install(patches, session.device.address)
    factories.install(patches)
    gpu.install(patches, session)
    refused.install(patches, session)
    propagation.install(patches)
    return patches
