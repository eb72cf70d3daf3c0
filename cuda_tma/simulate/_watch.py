"""Launches on a GPU that the simulator also runs, with a comparison of their memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import nvrtc
from cuda.core import Kernel, ObjectCode, Program

from .._compile.compiled import compiled_of
from .._launch.prepared import PreparedLaunch, packed_in
from .._launch.signature import lowered_name_of, name_of
from .._read.stream import is_capturing
from ._config import Config
from ._device.module import load_variables
from ._errors import ParseError, UnsupportedInstruction
from ._kernel import kernel_of
from ._machine.decode import decode
from ._machine.machine import Settings
from ._machine.observer import Observer
from ._machine.run import run
from ._memory import allocations as _allocations
from ._memory.copied_memory import CopiedMemory, Difference
from ._ptx import Module, Variable, parse
from ._ptx.text import text_of
from ._report import Report
from ._sanitize import Sanitizer

__all__ = ["Difference", "Watched", "watch"]

_parsed = lru_cache(maxsize=16)(parse)


@dataclass(frozen=True, slots=True)
class Watched:
    """A launch of a ``with`` block of :func:`watch`, with its report or the reason why the simulator did not run it.

    Attributes
    ----------
    kernel : str
    report : Report or None
        The report of the simulator; None if the simulator did not run the launch.
    differences : tuple of Difference
    skipped : str
        The reason why the simulator did not run the launch; empty if it ran.
    ptx : str
        The PTX that the simulator ran.
    """

    kernel: str
    report: Report | None = None
    differences: tuple[Difference, ...] = ()
    skipped: str = ""
    ptx: str = field(default="", repr=False)


@contextmanager
def watch(
    *,
    ptx: Iterable[Any] = (),
    launches_of_each: int | None = None,
    most_bytes: int = 1 << 32,
    sanitize: bool = True,
    strict: bool = False,
    **settings: Any,
) -> Iterator[list[Watched]]:
    """Also run each launch of a ``with`` block on the simulator, and compare the memory after both runs.

    The simulator runs each launch before the GPU, with the addresses of the GPU. The simulator copies an allocation to
    the host when the kernel or an argument first uses the allocation. After the launch, all copied memory is compared
    with the memory of the GPU. The comparison is exact only if no other thread or stream writes to this memory during
    the launch.

    Parameters
    ----------
    ptx : iterable of Program, ObjectCode, str, bytes or path, optional
        The PTX of kernels that :func:`cuda_tma.compile` did not compile. The name of a kernel selects its PTX. An item
        is a compiled Program with any target, the result of ``Program.compile("ptx")``, the text, or the path of a
        file. The program may append to a list inside the block.
    launches_of_each : int, optional
        The number of launches of each kernel that the simulator runs, from the first launch on; None for all launches.
    most_bytes : int
        The largest number of bytes to copy; the simulator does not run a launch that accesses more bytes.
    sanitize, strict : bool
        The settings of :class:`Device`: whether to search for missing synchronization, and whether disputed findings
        are errors.
    **settings
        The arguments ``order``, ``seed`` and ``max_steps`` of :meth:`Device.launch`.

    Yields
    ------
    list of Watched
        The list of results, one for each launch in order.

    Notes
    -----
    The function watches only calls of ``cuda_tma.launch`` and of the results of ``cuda_tma.prepare``. The simulator
    does not run kernels with unknown PTX, launches into a graph, and kernels with unsupported instructions. The yielded
    list contains the launches that did not run, each with the reason.

    Examples
    --------
    ::

        from cuda_tma import simulate

        with simulate.watch() as launches:
            cuda_tma.launch(stream, config, kernel, a, b, c)
        assert not any(launch.differences for launch in launches)
        for launch in launches:
            if launch.report is not None:  # None if the simulator could not run the launch
                launch.report.raise_for_errors()
    """
    import cuda_tma

    names = vars(cuda_tma)
    own = {name: names[name] for name in ("launch", "prepare")}
    observer = partial(Sanitizer, strict) if sanitize else lambda: None
    watcher = _Watcher(own["launch"], ptx, launches_of_each, most_bytes, Settings(**settings, strict=strict), observer)
    names.update(launch=watcher.launch, prepare=watcher.prepare)
    try:
        yield watcher.found
    finally:
        names.update(own)


class _Prepared(PreparedLaunch):
    """A launch from ``cuda_tma.prepare`` that the simulator also runs."""

    watcher: _Watcher

    def __call__(self, stream: Any) -> None:
        self.watcher.watched(stream, self, lambda: super(_Prepared, self).__call__(stream))


class _Source(NamedTuple):
    """The text of a kernel's PTX, and its file."""

    ptx: str
    lowered_name: str
    dynamic_shared_bytes: int


class _NotWatched(Exception):
    """The exception that contains the reason why the simulator does not run a launch."""


class _Watcher:
    """The results of watched launches, and the functions that replace those of ``cuda_tma``."""

    def __init__(
        self,
        launch: Any,
        ptx: Iterable[Any],
        launches_of_each: int | None,
        most_bytes: int,
        settings: Settings,
        observer: Callable[[], Observer | None],
    ):
        self._launch, self._ptx, self._settings, self._observer = launch, ptx, settings, observer
        self._launches_of_each, self._most_bytes = launches_of_each, most_bytes
        self._counts: Counter[_Source] = Counter()
        self._one_at_a_time = RLock()
        self.found: list[Watched] = []

    def launch(self, stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        """Watch a call of ``cuda_tma.launch``; this method replaces that function."""
        start = partial(self._launch, stream, config, kernel, *arguments)
        unread = ""
        try:
            prepared = PreparedLaunch(kernel, config, *arguments)
        except Exception as error:
            unread = f"its arguments cannot be read: {error}"
        if unread:  # The user receives the error of the launch itself.
            start()
            self.found.append(Watched("?", skipped=unread))
        else:
            self.watched(stream, prepared, start)

    def prepare(self, kernel: Any, config: Any, *arguments: Any) -> PreparedLaunch:
        """Return a prepared launch that is watched; this method replaces ``cuda_tma.prepare``."""
        prepared = _Prepared(kernel, config, *arguments)
        prepared.watcher = self
        return prepared

    def watched(self, stream: Any, prepared: PreparedLaunch, start: Callable[[], None]) -> None:
        """Simulate a launch, call `start` to run it on the GPU, and compare the memory of both runs."""
        kernel, config, arguments = packed_in(prepared)
        compiled = compiled_of(kernel)
        name = compiled.name if compiled else name_of(kernel)
        skipped = ""
        with self._one_at_a_time:
            try:
                source = self._source(stream, kernel)
                report, memory = self._simulated(source, config, kernel, arguments)
            except (_NotWatched, ParseError, UnsupportedInstruction, ValueError, TypeError) as error:
                skipped = str(error)
            start()
            if skipped:
                self.found.append(Watched(name, skipped=skipped))
                return
            _allocations.synchronize()
            self.found.append(Watched(name, report, memory.differences(), ptx=source.ptx))

    def _source(self, stream: Any, kernel: Kernel) -> _Source:
        """Return the PTX of a kernel, or raise the reason why the simulator cannot run the launch."""
        if is_capturing(stream):
            raise _NotWatched("the launch is captured into a graph")
        source = self._known(kernel)
        self._counts[source] += 1
        if self._launches_of_each is not None and self._counts[source] > self._launches_of_each:
            raise _NotWatched(f"the limit of watched launches is reached: launches_of_each={self._launches_of_each}")
        return source

    def _known(self, kernel: Kernel) -> _Source:
        compiled = compiled_of(kernel)
        if compiled is not None:
            return _Source(compiled.ptx, compiled.lowered_name, compiled.dynamic_shared_bytes)
        name = lowered_name_of(kernel) or name_of(kernel)
        found = {text for text in map(_text, self._ptx) if name in _parsed(text).functions}
        if not found:
            raise _NotWatched(
                "the PTX of the kernel is unknown; compile it with cuda_tma.compile, or pass its PTX to watch()"
            )
        if len(found) > 1:
            raise _NotWatched(f"{len(found)} of the PTX texts passed to watch() have a kernel of this name")
        return _Source(found.pop(), name, 0)

    def _simulated(
        self, source: _Source, config: Any, kernel: Kernel, arguments: tuple[bytes, ...]
    ) -> tuple[Report, CopiedMemory]:
        _allocations.synchronize()
        memory = CopiedMemory(self._most_bytes)
        for argument in arguments:
            memory.name(argument)
        module = _parsed(source.ptx)
        variables = load_variables(module, memory, _variables(kernel, module, memory))
        program = decode(module, source.lowered_name, variables)
        simulated = kernel_of(source.ptx, program, None, (), source.dynamic_shared_bytes)
        block = _block(program.entry.function.params, arguments)
        return run(simulated, Config.of(config), block, memory, self._settings, self._observer()), memory


def _text(given: Any) -> str:
    """Return the text of the PTX in an object."""
    if isinstance(given, Program):
        return _text_of_program(given)
    if isinstance(given, ObjectCode):
        if given.code_type != "ptx":
            raise TypeError(f"the ObjectCode is of type {given.code_type!r}; pass the result of compile('ptx')")
        given = given.code
    if isinstance(given, bytes):
        return given.rstrip(b"\0").decode()
    return text_of(given)


def _text_of_program(program: Program) -> str:
    """Return the PTX of a program that NVRTC compiled; NVRTC keeps PTX for every target."""
    if program.backend != "NVRTC":
        raise TypeError(f"the Program has the backend {program.backend}; pass the PTX of its source to watch()")
    _, size = nvrtc.nvrtcGetPTXSize(program.handle)
    # NVRTC writes to the bytes object, so the object must not be shared by Python, as b" " is.
    text = bytes(size + 1)
    nvrtc.nvrtcGetPTX(program.handle, text)
    return text[:size].rstrip(b"\0").decode()


def _variables(kernel: Kernel, module: Module, memory: CopiedMemory) -> dict[str, int]:
    """Return the GPU addresses of a module's variables, with the content that earlier launches left in them."""
    found = {}
    for variable in module.variables.values():
        # Variables with references are skipped, because addresses of functions on a GPU differ from those in the
        # simulator.
        if variable.space in ("global", "const") and not variable.references:
            address = _allocations.variable_address(kernel, variable.name)
            if address is not None and _holds(memory, address, variable):
                found[variable.name] = address
    return found


def _holds(memory: CopiedMemory, address: int, variable: Variable) -> bool:
    segment = memory.find(address)
    return segment is not None and address + variable.size_bytes <= segment.stop


def _block(declared: tuple[Variable, ...], arguments: tuple[bytes, ...]) -> np.ndarray:
    """Return the block of parameters with the offsets of PTX, which differ from the driver's offsets of tensor maps."""
    end = declared[-1].offset + declared[-1].size_bytes if declared else 1
    block = np.zeros(end, np.uint8)
    for parameter, data in zip(declared, arguments, strict=True):
        block[parameter.offset : parameter.offset + len(data)] = np.frombuffer(data, np.uint8)
    return block
