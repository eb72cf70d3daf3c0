"""The time limit of a compilation. NVRTC cannot be interrupted, so the process ends."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .console import complain
from .exit_status import UNSUPPORTED

__all__ = ["limited"]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End the process with a message if the block exceeds the time limit.

    Parameters
    ----------
    seconds : float
    """
    timer = threading.Timer(seconds, _end, [seconds])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(seconds: float) -> None:
    complain(f"the compilation of the kernel reached the time limit of {seconds:g} s")
    sys.stdout.flush()
    os._exit(UNSUPPORTED)
