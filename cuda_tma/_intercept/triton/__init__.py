"""The adapter of Triton. Triton compiles to PTX as for hardware, and a replaced driver runs launches on the
simulator."""

from __future__ import annotations

import os
from typing import Any

from triton.backends import backends
from triton.runtime import driver

from ..patches import Patches
from . import compiler, products, tuning
from .gpu_driver import Driver

__all__ = ["install"]

_TRUE = ("1", "true", "on", "y", "yes")  # Triton treats the values in _TRUE of an environment variable as true.


def install(session: Any) -> Patches:
    """Make the simulated GPU the active device of Triton.

    Parameters
    ----------
    session : Session
        The session that runs the launches. The session's device determines the compute capability.

    Returns
    -------
    Patches
        The patches, by which the caller can undo the change. The driver is not removed.
    """
    patches = Patches()
    compiler.install(patches, backends["nvidia"].compiler)
    patches.replace(backends["nvidia"].driver, "is_active", staticmethod(lambda: True))
    tuning.install(patches, session)
    products.install(patches, session.device.compute_capability)
    if os.environ.get("TRITON_INTERPRET", "0").lower() in _TRUE:
        session.note(
            "TRITON_INTERPRET is set: Triton's interpreter runs the kernels, and no launch is judged; unset it"
        )
    driver.set_active(Driver(session))
    return patches
