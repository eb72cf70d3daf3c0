"""The class Device, which is cuda.core's Device with the additional method ``create_tensor_map``."""

from __future__ import annotations

from collections.abc import Callable
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda.core import Device as _CoreDevice

from ._cuda.driver import require_driver
from ._make.create import OnDevice, register_ordinal
from ._tensor_map import register_device

if TYPE_CHECKING:
    from cuda.core import Buffer, Context, DeviceProperties, GraphBuilder, MemoryResource, Stream
    from typing_extensions import Self

    class _ComputeCapability(NamedTuple):
        major: int
        minor: int


__all__ = ["Device"]


def _delegated(name: str) -> property:
    def get(self: Device) -> Any:
        return getattr(self._core, name)

    def put(self: Device, value: Any) -> None:
        setattr(self._core, name, value)

    return property(get, put)


def _from_core(ask: Callable[[], Any]) -> Any:
    """Return cuda.core's result. Raise this package's error if the call fails because there is no driver."""
    try:
        return ask()
    except Exception:
        require_driver()
        raise


class Device(_CoreDevice):
    """A CUDA device, which equals a ``cuda.core.Device`` and can replace it.

    cuda.core keeps one Device object for each thread and ordinal, whose class is the class of the first call. Each call
    of this class creates a new object with the attributes of cuda.core's own Device, so that cuda.core keeps no object
    of this class.

    Parameters
    ----------
    device_id : int, optional
        The ordinal (default: the current device, or 0).

    Raises
    ------
    RuntimeError
        If there is no NVIDIA driver.
    """

    # The slots contain the Device of cuda.core, and its device_id.
    __slots__ = ("_core", "_ordinal")

    if TYPE_CHECKING:  # The library cuda.core has no annotations, so type checkers do not find inherited attributes.
        device_id: int
        name: str
        uuid: str
        pci_bus_id: str
        arch: str
        compute_capability: _ComputeCapability
        properties: DeviceProperties
        context: Context
        default_stream: Stream
        memory_resource: MemoryResource

        def set_current(self, ctx: Context | None = None) -> Context | None: ...
        def create_stream(self, obj: Any = None, options: Any = None) -> Stream: ...
        def create_graph_builder(self) -> GraphBuilder: ...
        def allocate(self, size: int, *, stream: Stream | GraphBuilder | None = None) -> Buffer: ...
        def sync(self) -> None: ...

    def __new__(cls, device_id: int | None = None) -> Self:
        self = object.__new__(cls)
        core = _from_core(lambda: _CoreDevice(device_id))
        object.__setattr__(self, "_core", core)
        object.__setattr__(self, "_ordinal", core.device_id)
        return self

    @classmethod
    def get_all_devices(cls) -> tuple[Self, ...]:
        """Return all devices of the machine, in ordinal order."""
        return tuple(cls(int(device)) for device in _from_core(_CoreDevice.get_all_devices))

    create_tensor_map = OnDevice.create_tensor_map

    def __eq__(self, other: object) -> bool:
        return self._core == (other._core if isinstance(other, Device) else other)

    def __hash__(self) -> int:
        return hash(self._core)


for _name, _member in vars(_CoreDevice).items():
    if isinstance(_member, (MemberDescriptorType, GetSetDescriptorType)) and not _name.startswith("__"):
        setattr(Device, _name, _delegated(_name))

register_device(Device)
register_ordinal(Device)
