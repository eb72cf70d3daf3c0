"""cuda.core's Device, with one more door: :meth:`Device.create_tensor_map`."""

from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType

from cuda.core import Device as _CoreDevice

from ._context import current_device
from ._create import create_tensor_map
from ._tensor_map import TensorMapDescriptor
from .errors import TensorMapError

__all__ = ["Device"]


def _delegated(name: str) -> property:
    def get(self):
        return getattr(self._core, name)

    def put(self, value):
        setattr(self._core, name, value)

    return property(get, put)


class Device(_CoreDevice):
    """A CUDA device: all that ``cuda.core.Device`` is, equal to it, and accepted wherever it is.

    cuda.core keeps one Device object for each thread and ordinal, of whichever class asked first. So this one is never
    kept there: it is a new object each time, and every attribute that cuda.core stores is read from and written to
    cuda.core's own.

    Parameters
    ----------
    device_id : int, optional
        The ordinal; the current device, or 0, if None.
    """

    __slots__ = ("_core",)

    def __new__(cls, device_id=None):
        self = object.__new__(cls)
        object.__setattr__(self, "_core", _CoreDevice(device_id))
        return self

    @classmethod
    def get_all_devices(cls):
        """All devices of the machine, in ordinal order."""
        return tuple(cls(int(device)) for device in _CoreDevice.get_all_devices())

    def create_tensor_map(self, tensor, options=None, **keywords) -> TensorMapDescriptor:
        """Make a descriptor of a tensor on this device, which must be the current one.

        See :func:`cuda_tma.create_tensor_map`.
        """
        own, current = self._core.device_id, current_device()
        if current != own:
            raise TensorMapError(
                f"Device({own}).create_tensor_map was called while device {current} is current; "
                f"call Device({own}).set_current() first"
            )
        return create_tensor_map(tensor, options, **keywords)

    def __eq__(self, other):
        return self._core == (other._core if isinstance(other, Device) else other)

    def __hash__(self):
        return hash(self._core)


for _name, _member in vars(_CoreDevice).items():
    if isinstance(_member, (MemberDescriptorType, GetSetDescriptorType)) and not _name.startswith("__"):
        setattr(Device, _name, _delegated(_name))
