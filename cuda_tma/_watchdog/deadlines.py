"""The part of a watchdog on the host: the memory that kernels write, and :func:`synchronize`, which reads it."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np
from cuda.bindings import driver
from cuda.core import Kernel

from .._compile.compiled import compiled_of
from .._cuda.core import CUDAError
from .._cuda_errors import explain_error
from .._launch.signature import name_of, types_of
from .._map_type import box_bytes
from ..hang import Hang, KernelHang
from ..rules import _refusals
from . import memory
from .memory import HEAD, NOTE, RECORD, Watched

__all__ = ["arm_watchdog", "synchronize"]

_VARIABLE = b"cuda_tma_watchdog"
_HUNG_OFFSET = 16
# The host waits for one more second, because threads that end at the deadline may release waiting threads.
_SLACK_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 20e-6, 1e-3
_RUNS_ON = (
    "the kernel is still running: nothing ends a wait at a hardware barrier; its stream, and work "
    "that waits for it, will not continue before the process ends"
)
_MOST_GONE = 64  # The host keeps the names of 64 destroyed kernels, because pending reports need the names.
_numbers = itertools.count(1)


class _Watch:
    """The memory of a context for all its watchdogs.

    The memory is never freed, because kernels may write to it at any time.
    """

    def __init__(self, context_id: int) -> None:
        self.context_id = context_id  # Two contexts never have the same id, although they may have the same handle.
        flags = driver.CU_MEMHOSTALLOC_PORTABLE | driver.CU_MEMHOSTALLOC_DEVICEMAP
        self.address = int(_call("cuMemHostAlloc", memory.BUFFER_BYTES, flags))
        content = (ctypes.c_uint8 * memory.BUFFER_BYTES).from_address(self.address)
        whole = np.ctypeslib.as_array(content)
        whole[:] = 0
        self.head = whole[: HEAD.itemsize].view(HEAD)
        self.records = whole[HEAD.itemsize :].view(RECORD)
        self.head["capacity"] = memory.CAPACITY
        self.told = np.zeros(memory.CAPACITY, bool)
        self.stream = _call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.modules: dict[int, Watched] = {}
        self._lock = threading.Lock()
        self._armed: WeakKeyDictionary[Kernel, tuple[int, int, float]] = WeakKeyDictionary()
        # The queue contains the numbers of destroyed kernels, and the kernel that was destroyed first is first.
        self._gone: deque[int] = deque()

    def arm(self, kernel: Kernel, address: int, watched: Watched, seconds: float) -> None:
        """Pass the memory for reports to a kernel, by a write to the kernel's variable at an address."""
        number = next(_numbers)
        with self._lock:
            while len(self._gone) > _MOST_GONE:
                del self.modules[self._gone.popleft()]
            self.modules[number] = watched
            self._armed[kernel] = address, number, seconds
        # The callback must not take the lock, because garbage collection may run it in a thread that holds the lock.
        finalize(kernel, self._gone.append, number).atexit = False
        self.write(address, np.array([self.address, number, 0], np.uint64).view(np.uint8))

    @property
    def armed(self) -> list[tuple[int, int, float]]:
        """Return the address of each live kernel's variable, the kernel's number, and its deadline in seconds."""
        with self._lock:
            return [*self._armed.values()]

    def write(self, address: int, content: np.ndarray) -> None:
        _call("cuMemcpyHtoDAsync", address, content.ctypes.data, content.nbytes, self.stream)
        _call("cuStreamSynchronize", self.stream)

    def read(self, address: int, size_bytes: int) -> np.ndarray:
        content = np.zeros(size_bytes, np.uint8)
        _call("cuMemcpyDtoHAsync", content.ctypes.data, address, size_bytes, self.stream)
        _call("cuStreamSynchronize", self.stream)
        return content

    def text_at(self, address: int) -> str:
        """Return the text at an address, up to the end of the readable memory."""
        for size_bytes in (128, 32, 8):
            try:
                return self.read(address, size_bytes).tobytes().partition(b"\0")[0].decode(errors="replace")
            except CUDAError:
                continue
        return ""

    def take(self, limits: tuple[str, ...] = ()) -> tuple[Hang, ...]:
        """Return the new records. The next call returns the records that threads are still writing."""
        with self._lock:
            return self._take(limits)

    def _take(self, limits: tuple[str, ...]) -> tuple[Hang, ...]:
        count = int(self.head["count"][0])
        fresh = (self.records["is_whole"] != 0) & ~self.told
        if count > memory.CAPACITY:
            limits = (*limits, f"{count - memory.CAPACITY} waiting warps were not recorded: the buffer is full")
        hangs = memory.hangs_of(self.records[fresh], self.modules, limits)
        self.told |= fresh
        # The host resets the records rarely, because a reset may remove a record that the GPU writes at the same time.
        if count > memory.CAPACITY // 2:
            self.records[:] = np.zeros((), RECORD)
            self.told[:] = False
            self.head["count"] = 0
        return hangs

    def forget_grids(self) -> None:
        """Delete the numbers of the launches that hung, because the next launch of a graph may have the same number."""
        for address, _, _ in self.armed:
            self.write(address + _HUNG_OFFSET, np.zeros(4, np.uint8))


# The key of a watch is the handle of its context, and a later context may have the same handle.
_watches: dict[int, _Watch] = {}
_making = threading.Lock()


def arm_watchdog(kernel: Kernel) -> None:
    """Pass the memory for reports to a kernel that was compiled with ``CUDA_TMA_WATCHDOG_MS``, in this context.

    :func:`compile` calls this function for its kernels, on the device of the compilation. In other kernels and on other
    devices, a wait that times out executes a trap until this function is called.

    Parameters
    ----------
    kernel : cuda.core.Kernel

    Raises
    ------
    ValueError
        If the kernel has no watchdog.
    RuntimeError
        If the driver cannot return the address of the kernel's variables (before 12.5).

    Examples
    --------
    ::

        macro, folder = ("CUDA_TMA_WATCHDOG_MS", "500"), cuda_tma.include_path()
        options = cuda_tma.ProgramOptions(std="c++17", define_macro=macro, include_path=folder)
        compiled = cuda_tma.Program(source, "c++", options).compile("cubin", name_expressions=("gemm",))
        cuda_tma.arm_watchdog(compiled.get_kernel("gemm"))
    """
    address = _variable_of(kernel)
    if address is None:
        raise ValueError(
            f"kernel {name_of(kernel)} has no watchdog: compile(..., watchdog_ms=500), or define CUDA_TMA_WATCHDOG_MS "
            "and include cuda_tma/tma.cuh"
        )
    _arm(kernel, address, Watched(name_of(kernel), maps=_maps_of(kernel)), 0.0)


def arm(kernel: Kernel, source: str, file: str, watchdog_ms: int) -> None:
    """Arm the watchdog of a kernel that was just compiled. Do nothing for a kernel without the package's headers."""
    address = _variable_of(kernel)
    if address is not None:
        watched = Watched(name_of(kernel), PurePath(file).name, tuple(source.splitlines()), _maps_of(kernel))
        _arm(kernel, address, watched, watchdog_ms / 1000)


def _variable_of(kernel: Kernel) -> int | None:
    """Return the address of the variable cuda_tma_watchdog (``watchdog.cuh``) in the kernel's module.

    The address is valid in the current context.
    """
    library = _call("cuKernelGetLibrary", driver.CUkernel(int(kernel.handle)))
    result, address, _ = driver.cuLibraryGetGlobal(library, _VARIABLE)
    if result == driver.CUresult.CUDA_ERROR_NOT_FOUND:
        return None
    if result != driver.CUresult.CUDA_SUCCESS:
        raise _error("cuLibraryGetGlobal", result)
    return int(address)


def _arm(kernel: Kernel, address: int, watched: Watched, seconds: float) -> None:
    context = _call("cuCtxGetCurrent")
    with _making:
        watch = _watch_of(context)
        if watch is None:
            watch = _watches[int(context)] = _Watch(_call("cuCtxGetId", context))
    watch.arm(kernel, address, watched, seconds)


def _watch_of(context: Any) -> _Watch | None:
    """Return the memory of a context.

    Return None if the memory belongs to a destroyed context with the same handle.
    """
    watch = _watches.get(int(context))
    if watch is None:
        return None
    result, context_id = driver.cuCtxGetId(context)
    is_another = result == driver.CUresult.CUDA_SUCCESS and context_id != watch.context_id
    return None if is_another else watch  # For a lost context, the driver may return an error in place of the id.


def _maps_of(kernel: Kernel) -> Mapping[str, int]:
    compiled = compiled_of(kernel)
    types = types_of(kernel) or ()
    names = compiled.parameter_names if compiled is not None and len(compiled.parameter_names) == len(types) else ()
    return box_bytes(zip(names, types, strict=False))


# ---- waiting ----


def synchronize(stream: Any) -> None:
    """Wait until a stream is complete. Raise an error if a kernel with a watchdog has hung.

    Parameters
    ----------
    stream : cuda.core.Stream
        The stream, or any object with ``__cuda_stream__``.

    Raises
    ------
    KernelHang
        If waits of a kernel that was compiled with ``watchdog_ms`` have passed their deadline. The report contains the
        waiting threads, the place, the barrier, and the missing arrivals or bytes. The kernel has then ended, its
        earlier writes remain, and the context and its memory are usable. The kernel may have run on another stream of
        the context. If the wait is at a hardware barrier, the kernel still runs, and the report states that.
    CUDAError
        If the context is lost, or if the driver's wait fails.

    Notes
    -----
    Other functions that wait (``stream.sync()``, ``torch.cuda.synchronize()``) return normally after the deadline. The
    report then remains for the next call of this function.

    Examples
    --------
    ::

        kernel = cuda_tma.compile(source, "gemm", watchdog_ms=500)
        cuda_tma.launch(stream, config, kernel, a, b, c, k_tiles)
        cuda_tma.synchronize(stream)
    """
    handle = driver.CUstream(_handle_of(stream))
    context = _call("cuCtxGetCurrent") if int(handle) <= 2 else _call("cuStreamGetCtx", handle)
    watch = _watch_of(context)
    if watch is None:
        _call("cuStreamSynchronize", handle)
        return
    result = _wait(handle, watch)
    lost = result not in (driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_NOT_READY)
    hangs = watch.take((f"the context is lost: {result.name}",) if lost else ())
    if hangs:
        if not lost:
            watch.forget_grids()
        raise KernelHang(hangs)
    if lost:
        raise _error("cuStreamQuery", result)


def _handle_of(stream: Any) -> int:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(
            f"stream is a {type(stream).__name__}; pass a cuda.core.Stream, or an object with __cuda_stream__"
        )
    if getattr(stream, "is_closed", False) is True:
        raise _refusals.closed_stream()
    version, handle = protocol() if callable(protocol) else protocol
    if version != 0:
        raise _refusals.stream_protocol(version)
    return int(handle)


def _wait(handle: Any, watch: _Watch) -> Any:
    """Wait for the stream, and return its last status. Raise an error if warps have stopped at hardware barriers."""
    pause, notes = _FIRST_PAUSE_SECONDS, _Notes(watch)
    while True:
        (result,) = driver.cuStreamQuery(handle)
        if result != driver.CUresult.CUDA_ERROR_NOT_READY:
            return result
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if hangs := notes.stuck():
            raise KernelHang((*watch.take((_RUNS_ON,)), *hangs))


class _Notes:
    """The places of warps at hardware barriers, which the host reads at intervals."""

    def __init__(self, watch: _Watch):
        self._watch = watch
        self._next = time.monotonic() + _SLACK_SECONDS / 4
        self._since: dict[tuple[int, int], tuple[bytes, float]] = {}

    def stuck(self) -> tuple[Hang, ...]:
        """Return the kernels with a warp that has waited at one place beyond the deadline."""
        now = time.monotonic()
        if now < self._next:
            return ()
        self._next = now + _SLACK_SECONDS / 4
        return tuple(self._stuck_of(now))

    def _stuck_of(self, now: float) -> Iterator[Hang]:
        for address, number, seconds in self._watch.armed:
            notes = self._watch.read(address + memory.NOTES_OFFSET, memory.NOTES * NOTE.itemsize).view(NOTE)
            (places,) = np.nonzero(notes["place"])
            known = {(number, int(place)): notes[place].tobytes() for place in places}
            for key, note in known.items():
                if self._since.get(key, (b"", 0.0))[0] != note:
                    self._since[key] = note, now
            old = [place for _, place in known if now - self._since[number, place][1] > seconds + _SLACK_SECONDS]
            if old:
                watched = self._watch.modules[number]
                yield memory.stuck(notes[old], watched, self._watch.text_at, (_RUNS_ON,))


def _call(name: str, *arguments: Any) -> Any:
    result, *values = getattr(driver, name)(*arguments)
    if result != driver.CUresult.CUDA_SUCCESS:
        raise _error(name, result)
    return values[0] if values else None


def _error(name: str, result: Any) -> CUDAError:
    return CUDAError(f"{name} failed with {result.name}{explain_error(int(result))}")
