"""Forked processes that use several cores, and return their results through pipes."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple, TypeVar

from .._machine.deadline import THREAD_NAME
from .._machine.progress import hide_progress

__all__ = ["cores", "results_of"]

Given = TypeVar("Given")
Result = TypeVar("Result")


class _Worker(NamedTuple):
    pid: int
    results: BinaryIO


def cores() -> int:
    """Return the number of cores for forked processes; 1 if a fork may deadlock, for example with several threads."""
    others = [each for each in threading.enumerate() if each.name != THREAD_NAME]
    if sys.platform != "linux" or len(others) > 1:
        return 1
    return len(os.sched_getaffinity(0))


def results_of(
    work: Callable[[Given], Result], given: Sequence[Given], processes: int
) -> Generator[Result, None, None]:
    """Yield ``work(each)`` for each item in order, computed by forked processes.

    If `processes` is 0, this process computes all results. A forked process has a copy of all memory, so its work has
    no effect except its result. If a forked process fails, this process repeats its work.
    """
    workers: list[_Worker] = []
    try:
        for first in range(processes):
            workers.append(_forked(work, given[first::processes]))
        for number, each in enumerate(given):
            yield _result(work, each, workers[number % processes] if workers else None)
    finally:
        for worker in workers:
            _end(worker)


def _result(work: Callable[[Given], Result], given: Given, worker: _Worker | None) -> Result:
    """Return the next result of a forked process; compute the result in this process if the forked process failed."""
    if worker is not None:
        with suppress(EOFError, pickle.PickleError):
            found: Result = pickle.load(worker.results)
            return found
    return work(given)


def _forked(work: Callable[[Given], object], given: Sequence[Given]) -> _Worker:
    reader, writer = os.pipe()
    # Python 3.12 warns that a fork with threads may hang, but the threads of NumPy's BLAS do not cause a hang.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(writer)
        return _Worker(pid, open(reader, "rb"))
    try:
        os.close(reader)
        hide_progress()
        # Without gc.freeze(), a garbage collection in the new process would copy the memory pages of all older objects.
        gc.freeze()
        with open(writer, "wb") as results:
            for each in given:
                pickle.dump(work(each), results)
                results.flush()
    finally:
        os._exit(0)


def _end(worker: _Worker) -> None:
    worker.results.close()
    with suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(worker.pid, 0)
