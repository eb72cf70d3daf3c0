"""Launches on a GPU, watched: the simulator runs each of them too, and both must leave the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from cuda.core import Buffer

from .. import codec
from .._launch.compiled import compiled_of
from .._launch.mangled import MapPointer
from .._make.create import create_tensor_map
from .._read.export import export_tensor
from .._tensor_map import TensorMapDescriptor
from ..errors import TensorMapError
from ..map_type import MapType
from ..parameters_of import KernelParameter, parameters_of
from ._allocations import Allocations
from ._arguments import parameter_block
from ._decode import decode
from ._global_memory import GlobalMemory, Segment
from ._machine import Settings
from ._module import load_variables
from ._run import run
from .config import Config
from .errors import ParseError, UnsupportedInstruction
from .findings import Report
from .kernel import kernel_of
from .ptx import parse

__all__ = ["Difference", "Watched", "watch"]

_MAP_BYTES = 128
_parsed = lru_cache(maxsize=16)(parse)


@dataclass(frozen=True, slots=True)
class Difference:
    """An allocation that the GPU and the simulator left different.

    Attributes
    ----------
    address : int
        Of the first byte that differs.
    allocation : int
        Where its allocation begins.
    count : int
        How many bytes differ.
    gpu, simulator : bytes
        The 16 bytes from `address` on, as each left them.
    """

    address: int
    allocation: int
    count: int
    gpu: bytes
    simulator: bytes

    def __str__(self) -> str:
        """In a sentence."""
        return (
            f"{self.count} bytes differ in the allocation at 0x{self.allocation:x}, the first at 0x{self.address:x}: "
            f"{self.gpu.hex()} on the GPU, {self.simulator.hex()} on the simulator"
        )


@dataclass(frozen=True, slots=True)
class Watched:
    """A launch that was watched, or why it was not.

    Attributes
    ----------
    kernel : str
    report : Report or None
        What the simulator found; None if it did not run.
    differences : tuple of Difference
    skipped : str
        Why the simulator did not run; empty if it did.
    """

    kernel: str
    report: Report | None = None
    differences: tuple[Difference, ...] = ()
    skipped: str = ""


@contextmanager
def watch(*, most_bytes: int = 1 << 32, **settings: Any) -> Iterator[list[Watched]]:
    """Run every launch of a block on the simulator, too, and compare what both leave in memory.

    Before a launch, every allocation that an argument names is copied to this machine, and after it once more; the
    simulator starts from the first copies. Each launch is waited for.

    Parameters
    ----------
    most_bytes : int
        A launch whose arguments name more is not watched.
    **settings
        ``order``, ``seed`` and ``max_steps`` of :meth:`Device.launch`.

    Yields
    ------
    list of Watched
        One for each launch, in order.

    Notes
    -----
    Seen are calls of ``cuda_tma.launch``, and of what ``cuda_tma.prepare`` gives, by these names; of kernels that
    ``cuda_tma.compile`` made. Not seen: allocations that only a struct, or memory, points to, but for arrays of typed
    maps; what a launch before left in a module's variables.

    Examples
    --------
    ::

        from cuda_tma import simulate

        with simulate.watch() as launches:
            cuda_tma.launch(stream, config, kernel, a, b, c)
        assert not any(launch.differences for launch in launches)
    """
    import cuda_tma

    names = vars(cuda_tma)
    own = {name: names[name] for name in ("launch", "prepare")}
    watcher = _Watcher(most_bytes, Settings(**settings), own["launch"])
    names.update(launch=watcher.launch, prepare=partial(_Prepared, watcher, own["prepare"]))
    try:
        yield watcher.found
    finally:
        names.update(own)


class _Prepared:
    """What stands for a prepared launch while launches are watched."""

    def __init__(self, watcher: _Watcher, prepare: Any, kernel: Any, config: Any, *arguments: Any):
        self._watcher, self._given = watcher, (config, kernel, *arguments)
        self._prepared = prepare(kernel, config, *arguments)

    def __call__(self, stream: Any) -> None:
        config, kernel, *arguments = self._given
        self._watcher.watched(config, kernel, arguments, lambda: self._prepared(stream))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prepared, name)


class _Watcher:
    """Launches, and what was found of them."""

    def __init__(self, most_bytes: int, settings: Settings, launch: Any):
        self._most_bytes, self._settings, self._launch = most_bytes, settings, launch
        self.found: list[Watched] = []

    def launch(self, stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        """In place of ``cuda_tma.launch``."""
        self.watched(config, kernel, arguments, lambda: self._launch(stream, config, kernel, *arguments))

    def watched(self, config: Any, kernel: Any, arguments: Any, start: Any) -> None:
        """Launch by `start`, between two copies; then simulate, and compare."""
        compiled = compiled_of(kernel)
        if compiled is None:
            start()
            self.found.append(Watched("?", skipped="its PTX is not known: compile it by cuda_tma.compile"))
            return
        parameters = tuple(parameters_of(kernel))
        given = [_plain(argument, known) for argument, known in zip(arguments, parameters, strict=True)]
        memory = _named(given, parameters)
        if memory.size > self._most_bytes:
            start()
            text = f"its arguments name {memory.size} bytes, more than most_bytes={self._most_bytes}"
            self.found.append(Watched(compiled.name, skipped=text))
            return
        before = memory.copies()
        start()
        self.found.append(self._simulated(compiled, config, given, before, memory.copies()))

    def _simulated(self, compiled: Any, config: Any, given: list[Any], before: dict, after: dict) -> Watched:
        memory = GlobalMemory()
        for address, data in before.items():
            memory.add(Segment(address, data, f"the allocation at 0x{address:x}"))
        try:
            module = _parsed(compiled.ptx)
            program = decode(module, compiled.lowered_name, load_variables(module, memory))
        except (ParseError, UnsupportedInstruction) as error:
            return Watched(compiled.name, skipped=str(error))
        kernel = kernel_of(compiled.ptx, program, None, (), compiled.dynamic_shared_bytes)
        block = parameter_block(kernel, given, memory.address, _no_map)
        report = run(kernel, Config.of(config), block, memory, self._settings)
        found = [_difference(address, data, before[address]) for address, data in after.items()]
        return Watched(compiled.name, report, tuple(each for each in found if each is not None))


def _plain(argument: Any, known: KernelParameter) -> Any:
    """An argument as the simulator takes it: 128 bytes of a map, an address, or what it was."""
    if isinstance(argument, TensorMapDescriptor):
        return bytes(argument)
    if argument is None or isinstance(argument, (bool, int, float, bytes, bytearray, np.generic)):
        return argument
    if isinstance(known.type, MapType):
        return bytes(create_tensor_map(argument, known.type.options))
    if isinstance(argument, Buffer):
        return int(argument.handle)
    return export_tensor(argument).data_pointer


def _named(given: list[Any], parameters: tuple[KernelParameter, ...]) -> Allocations:
    """The allocations that arguments name."""
    memory = Allocations()
    for argument, known in zip(given, parameters, strict=True):
        if isinstance(argument, bytes) and known.size_bytes == _MAP_BYTES:
            _add_tensor(memory, argument)
        elif isinstance(argument, int) and known.size_bytes == 8 and known.type != "integer":
            memory.add(argument)
        if isinstance(known.type, MapPointer) and isinstance(argument, int):
            data = memory.read(argument)
            for start in range(0, len(data) - _MAP_BYTES + 1, _MAP_BYTES):
                _add_tensor(memory, data[start : start + _MAP_BYTES])
    return memory


def _add_tensor(memory: Allocations, data: bytes) -> None:
    """That of a map's tensor."""
    try:
        memory.add(codec.decode(data).global_address)
    except TensorMapError:  # bytes that are no map
        return


def _no_map(array: Any, of_type: MapType) -> Any:
    raise TypeError("a map is given as its bytes")


def _difference(address: int, gpu: np.ndarray, simulator: np.ndarray) -> Difference | None:
    wrong = np.flatnonzero(gpu != simulator)
    if not len(wrong):
        return None
    first = int(wrong[0])
    shown = slice(first, first + 16)
    return Difference(address + first, address, len(wrong), gpu[shown].tobytes(), simulator[shown].tobytes())
