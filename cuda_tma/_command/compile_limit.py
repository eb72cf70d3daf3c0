"""The limits on the time and the memory of a compilation.

The process ends at a limit, because NVRTC cannot be interrupted.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._budget import COMPILER_BYTES
from .console import complain
from .exit_status import UNSUPPORTED

__all__ = ["limited"]


_EVERY_SECONDS = 0.1


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End the process with a message if the ``with`` block exceeds the limit of time or of memory.

    Parameters
    ----------
    seconds : float
    """
    ended = threading.Event()
    threading.Thread(target=_watch, args=(seconds, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(seconds: float, ended: threading.Event) -> None:
    stop, most = time.monotonic() + seconds, _resident_bytes() + COMPILER_BYTES
    while not ended.wait(min(_EVERY_SECONDS, max(0.0, stop - time.monotonic()))):
        if time.monotonic() >= stop:
            _end(f"reached the time limit of {seconds:g} s")
        if _resident_bytes() > most:
            _end(f"needs more than {COMPILER_BYTES >> 30} GiB of memory")


def _resident_bytes() -> int:
    """Return the resident memory of this process in bytes; 0 if the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _end(reason: str) -> None:
    complain(f"the compilation of the kernel {reason}")
    sys.stdout.flush()
    os._exit(UNSUPPORTED)
