"""The answers to requests of the driver library for modules, launches and memory on the session's device."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ..._errors import TensorMapError
from ...simulate._config import Config
from ...simulate._errors import ParseError, UnsupportedInstruction
from ...simulate._memory.global_memory import Segment
from ..leaks import leak_text
from ..session import Session
from .attributes import device_attributes, total_bytes
from .device_runtime import with_device_runtime
from .images import NoPTX, ptx_of
from .kernel_names import kernel_name
from .linking import linked_ptx
from .messages import Kind, Launch, Memory, Misuse, device_reply, launch_of, module_reply
from .misuses import misused
from .modules import BytesAt, LoadedModule, bytes_of_this_process
from .tensor_maps import tensor_map

__all__ = ["Server"]

RUNTIME = "CUDA driver"
_SUCCESS, _INVALID_VALUE, _INVALID_IMAGE, _NO_BINARY, _INVALID_PTX, _NOT_FOUND, _NOT_SUPPORTED = (
    0,
    1,
    200,
    209,
    218,
    500,
    801,
)
_FREED = "lay, which the program has freed: free it after the last launch that uses it"
_PRIVATE = (
    "a program has NVIDIA's CUDA runtime, which needs a GPU's driver, so its launches are not judged. Remedy: link it "
    "with nvcc -cudart shared, without -rpath to a CUDA toolkit"
)
_UNLOADED = {
    _INVALID_IMAGE: "is no fat binary, or one whose header is damaged",
    _NO_BINARY: "contains no PTX for this compute capability",
    _INVALID_PTX: "contains PTX that cannot be read",
}
_NAMES = {
    Memory.DEVICE: "memory",
    Memory.POOL: "memory of a pool",
    Memory.HOST: "page-locked memory",
    Memory.MANAGED: "managed memory",
    Memory.REGISTERED: "registered memory of the host",
    Memory.VARIABLE: "a variable",
    Memory.VIRTUAL: "mapped memory",
}

Answer = tuple[int, bytes]


class Server:
    """The server that answers the driver library of one process.

    Parameters
    ----------
    session : Session
    bytes_at : callable, optional
        The function that reads the memory of the program, if the program is another process.
    """

    def __init__(self, session: Session, bytes_at: BytesAt = bytes_of_this_process):
        self._session, self._bytes_at = session, bytes_at
        self._modules: dict[int, LoadedModule] = {}
        self._numbers = count(1)
        self._segments: dict[int, Segment] = {}
        self._sources: dict[str, str] = {}
        self._answers: dict[int, Callable[[bytes], Answer]] = {
            Kind.DEVICE: self._device,
            Kind.ALLOCATED: self._allocated,
            Kind.FREED: self._freed,
            Kind.LOAD: self._load,
            Kind.PLACE: self._place,
            Kind.UNLOAD: self._unload,
            Kind.LAUNCH: self._launch,
            Kind.TENSOR_MAP: self._tensor_map,
            Kind.ABSENT: self._absent,
            Kind.MISUSE: self._misuse,
            Kind.SOURCE: self._source,
            Kind.ADDRESS: self._address,
            Kind.PRIVATE: self._private,
            Kind.SKIP: self._skip,
            Kind.LINK: self._link,
        }

    def answer(self, kind: int, data: bytes) -> Answer:
        """Return a ``CUresult`` and the bytes of the reply to a request."""
        function = self._answers.get(kind)
        return function(data) if function is not None else (_NOT_SUPPORTED, b"")

    def failed(self, error: BaseException) -> None:
        """Report an error that the answer to a request does not handle."""
        self._session.note(f"the driver library: {type(error).__name__}: {error}")

    # ---- the device and its memory ----

    def _device(self, _: bytes) -> Answer:
        device = self._session.device
        major, minor = device.compute_capability
        name = f"simulated GPU of compute capability {major}.{minor}"
        return _SUCCESS, device_reply(total_bytes(), name, device_attributes(device))

    def _allocated(self, data: bytes) -> Answer:
        address, size, kind, lies_at = struct.unpack("<4Q", data)
        segment = Segment(address, self._bytes_at(lies_at, size), f"{_NAMES[Memory(kind)]}, {size} bytes")
        self._segments[address] = segment
        self._session.device._memory.add(segment)
        return _SUCCESS, leak_text(kind)

    def _freed(self, data: bytes) -> Answer:
        (address,) = struct.unpack("<Q", data)
        self._session.acquire()  # The server waits, because a launch of another thread may use the memory.
        try:
            segment = self._segments.pop(address, None)
            if segment is not None:
                self._session.device._memory.remove(segment, _FREED)
        finally:
            self._session.release()
        return _SUCCESS, b""

    def _address(self, data: bytes) -> Answer:
        """Return the address of an array's bytes if another adapter has mapped the array."""
        address, size = struct.unpack("<2Q", data)
        segment = self._session.device._memory.find(address)
        if segment is None or address + size > segment.stop:
            return _NOT_FOUND, b""
        return _SUCCESS, struct.pack("<Q", segment.bytes.ctypes.data + address - segment.start)

    # ---- modules and launches ----

    def _load(self, image: bytes) -> Answer:
        capability = self._session.device.compute_capability
        try:
            ptx = ptx_of(image, capability)
            module = LoadedModule(with_device_runtime(ptx), self._sources.get(ptx, ""), capability)
        except NoPTX as error:
            self._session.skip("a module", str(error), RUNTIME)
            return _NO_BINARY, b""
        except (ParseError, UnsupportedInstruction, ValueError) as error:
            self._session.skip("a module", f"{type(error).__name__}: {error}", RUNTIME)
            return _INVALID_PTX, b""
        number = next(self._numbers)
        self._modules[number] = module
        sizes = {each.name: each.size_bytes for each in module.variables}
        return _SUCCESS, module_reply(number, module.functions(), sizes)

    def _link(self, data: bytes) -> Answer:
        try:
            return _SUCCESS, linked_ptx(data, self._session.device.compute_capability).encode() + b"\0"
        except ValueError as error:
            self._session.skip("a link", str(error), RUNTIME)
            return _NO_BINARY if isinstance(error, NoPTX) else _INVALID_PTX, b""

    def _place(self, data: bytes) -> Answer:
        number, *addresses = struct.unpack(f"<{len(data) // 8}Q", data)
        self._modules[number].place(addresses, self._bytes_at)
        return _SUCCESS, b""

    def _unload(self, data: bytes) -> Answer:
        (number,) = struct.unpack("<Q", data)
        self._modules.pop(number, None)
        return _SUCCESS, b""

    def _launch(self, data: bytes) -> Answer:
        launch = launch_of(data)
        module = self._modules[launch.module]
        entry = module.entries[launch.function]
        name = kernel_name(entry)
        try:
            kernel = module.kernel(launch.function)
        except (ParseError, UnsupportedInstruction) as error:
            self._session.skip(name, f"{type(error).__name__}: {error}", RUNTIME)
            return _NOT_SUPPORTED, b""
        try:
            arguments = _arguments(launch.parameters, kernel)
            self._session.launch(name, module.ptx, entry, _config(launch), arguments, runtime=RUNTIME, kernel=kernel)
        except (TypeError, ValueError, OverflowError):
            return _INVALID_VALUE, b""  # The session has already reported the reason of the failed launch.
        return _SUCCESS, b""

    def _tensor_map(self, data: bytes) -> Answer:
        try:
            return _SUCCESS, tensor_map(data, self._session.device.compute_capability)
        except TensorMapError as error:
            self._session.note(f"the driver refuses a tensor map: {error}")
            return _INVALID_VALUE, b""

    # ---- notes ----

    def _absent(self, name: bytes) -> Answer:
        text = name.decode("utf-8", "replace")
        self._session.note(f"the driver library does not have {text}: it returned CUDA_ERROR_NOT_SUPPORTED")
        return _SUCCESS, b""

    def _misuse(self, data: bytes) -> Answer:
        kind, address, size = struct.unpack("<3Q", data)
        memory = self._session.device._memory
        self._session.found(lambda place: misused(Misuse(kind), address, size, memory, place), RUNTIME)
        return _SUCCESS, b""

    def _private(self, _: bytes) -> Answer:
        self._session.note(_PRIVATE)
        return _SUCCESS, b""

    def _skip(self, data: bytes) -> Answer:
        (result,) = struct.unpack_from("<Q", data)
        name = kernel_name(data[8:].decode("utf-8", "replace"))
        reason = _UNLOADED.get(result, f"cannot be loaded: error {result}")
        self._session.skip(name, f"the module of {name} {reason}", RUNTIME)
        return _SUCCESS, b""

    def _source(self, data: bytes) -> Answer:
        ptx, _, source = data.decode("utf-8", "replace").partition("\0")
        self._sources[ptx] = source
        return _SUCCESS, b""


def _config(launch: Launch) -> Config:
    """Return the configuration of a launch, whose grid is in clusters."""
    cluster = launch.cluster if all(launch.cluster) else None
    grid = launch.grid
    if cluster is not None:
        if any(extent % by for extent, by in zip(grid, cluster, strict=True)):
            raise ValueError(f"the grid {grid} is not a multiple of the cluster {cluster}")
        grid = tuple(extent // by for extent, by in zip(grid, cluster, strict=True))
    return Config(
        grid=grid,
        block=launch.block,
        cluster=cluster,
        shmem_size=launch.shared_bytes,
        is_cooperative=launch.is_cooperative,
        programmatic_stream_serialization=launch.is_programmatic,
    )


def _arguments(block: bytes, kernel: Any) -> list[np.void]:
    """Return the bytes of each parameter. A parameter of any type accepts bytes."""
    declared = kernel.program.entry.function.params
    return [np.void(block[each.offset : each.offset + each.size_bytes]) for each in declared]
