"""A lock that counts how often it is acquired."""

from __future__ import annotations

from threading import RLock


class CountedLock:
    """A reentrant lock that counts its acquisitions in `uses`."""

    def __init__(self) -> None:
        self._lock, self.uses = RLock(), 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.uses += 1

    def __exit__(self, *_: object) -> None:
        self._lock.release()
