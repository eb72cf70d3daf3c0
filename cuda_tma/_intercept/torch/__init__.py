"""``device="cuda"`` without a GPU: tensors in this machine's memory that report the simulated GPU.

Operators of torch run on the CPU. A launch of a kernel reaches the same memory.
"""

from __future__ import annotations

from typing import Any

from ..patches import Patches
from . import factories, gpu, propagation, refused, tensors

__all__ = ["install"]


def install(session: Any) -> Patches:
    """Let torch use the simulated GPU of a session.

    Parameters
    ----------
    session : Session
        Its device has the compute capability, and the addresses of tensors.

    Returns
    -------
    Patches
        They can be undone.
    """
    patches = Patches()
    tensors.install(patches, session.device.address)
    factories.install(patches)
    gpu.install(patches, session)
    refused.install(patches, session)
    propagation.install(patches)
    return patches
