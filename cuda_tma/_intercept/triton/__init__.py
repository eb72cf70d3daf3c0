"""Triton without a GPU: a driver whose launches run on the simulator. Triton compiles as for hardware, up to PTX."""

from __future__ import annotations

import os
from typing import Any

from triton.backends import backends
from triton.runtime import driver

from ..patches import Patches
from . import compiler, products, tuning
from .gpu_driver import Driver

__all__ = ["install"]

_TRUE = ("1", "true", "on", "y", "yes")  # of Triton's variables


def install(session: Any) -> Patches:
    """Make the simulated GPU Triton's active device.

    Parameters
    ----------
    session : Session
        Its device has the compute capability; launches go to it.

    Returns
    -------
    Patches
        They can be undone; the driver stays.
    """
    patches = Patches()
    compiler.install(patches, backends["nvidia"].compiler)
    patches.replace(backends["nvidia"].driver, "is_active", staticmethod(lambda: True))
    tuning.install(patches, session)
    products.install(patches)
    if os.environ.get("TRITON_INTERPRET", "0").lower() in _TRUE:
        session.note(
            "TRITON_INTERPRET is set: Triton's interpreter runs the kernels, and no launch is judged; unset it"
        )
    driver.set_active(Driver(session))
    return patches
