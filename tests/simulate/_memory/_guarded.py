"""A lock that counts its uses."""

from __future__ import annotations

from threading import RLock


class CountedLock:
    """A lock that several functions of one thread may hold; `uses` counts them."""

    def __init__(self) -> None:
        self._lock, self.uses = RLock(), 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.uses += 1

    def __exit__(self, *_: object) -> None:
        self._lock.release()
