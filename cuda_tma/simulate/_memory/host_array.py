"""Arrays of the host, each with its address, the object that owns its memory, and the present range of the memory."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Extent", "HostArray", "Owner", "host_array"]

# A capsule "numpy_dltensor" contains a DLPack tensor before version 1.0, which has no flag for read-only memory.
_UNVERSIONED = b"numpy_dltensor"


class Extent(NamedTuple):
    """A range of the host's memory: the address of its first byte, and its size in bytes."""

    begin: int
    size: int

    @property
    def end(self) -> int:
        return self.begin + self.size

    def contains(self, other: Extent) -> bool:
        """Return whether this range contains all bytes of another range."""
        return self.begin <= other.begin and other.end <= self.end

    def overlaps(self, other: Extent) -> bool:
        """Return whether both ranges have a byte in common."""
        return self.begin < other.end and other.begin < self.end and min(self.size, other.size) > 0


class Owner:
    """The owner of the memory of an array, with a weak reference that does not keep the owner alive.

    Parameters
    ----------
    watched : object
        The object that owns the memory. An object that does not support weak references stays alive.
    locate : callable
        A function that returns the present range of the object's memory.
    name : str
        The name of the object in findings.
    kept : object
        An object that keeps the memory at its address as long as `watched` exists.
    is_whole : bool
        Whether the range contains all arrays that share the memory.

    Attributes
    ----------
    extent : Extent
        The range of the memory when this owner was created.
    """

    __slots__ = ("_kept", "_locate", "_watched", "extent", "is_whole", "name")

    def __init__(
        self, watched: object, locate: Callable[[Any], Extent], name: str, kept: object = None, is_whole: bool = True
    ):
        try:
            self._watched: Callable[[], object | None] = weakref.ref(watched)
        except TypeError:
            self._watched = lambda: watched
        self._locate, self.name, self._kept, self.is_whole = locate, name, kept, is_whole
        self.extent = locate(watched)

    def watched(self) -> object | None:
        """The object that owns the memory; None if the object no longer exists."""
        return self._watched()

    def is_current(self) -> bool:
        """Return whether the object that owns the memory exists, and its memory has not moved."""
        watched = self._watched()
        return watched is not None and self._locate(watched) == self.extent


class HostArray(NamedTuple):
    """An array of the host as a range of memory.

    Attributes
    ----------
    address : int
        The address of the first element.
    owner : Owner
    writeable : bool
        Whether a kernel may write through this array.
    """

    address: int
    owner: Owner
    writeable: bool


def host_array(array: Any) -> HostArray:
    """Return the address, the owner and the permission of an array on the host.

    Raises
    ------
    TypeError
        If the argument is not an array on the host.
    ValueError
        If the memory has moved, but the array still has the old address.
    """
    if isinstance(array, np.ndarray):
        found = _of_numpy(array)
    elif hasattr(array, "untyped_storage"):
        found = _of_torch(array)
    else:
        found = _of_dlpack(array)
    whole = found.owner.extent
    if not whole.begin <= found.address <= whole.end:
        raise ValueError(
            f"the array begins at 0x{found.address:x}, outside {found.owner.name} at 0x{whole.begin:x}, which has been "
            "resized; create the view again"
        )
    return found


def _of_numpy(array: np.ndarray) -> HostArray:
    if array.dtype.hasobject:
        raise TypeError(f"the array's elements ({array.dtype}) are Python objects; pass numbers")
    root, base = _root(array)
    if hasattr(base, "untyped_storage"):
        return HostArray(array.ctypes.data, _storage_owner(base), array.flags.writeable)
    own = _byte_bounds(root)
    exported = _buffer(base)
    if exported is not None and exported.contains(own):
        owner = Owner(root, lambda _: exported, f"the {type(base).__name__} of {exported.size} bytes")
    else:
        owner = Owner(root, _byte_bounds, _described(root), is_whole=base is None)
    return HostArray(array.ctypes.data, owner, array.flags.writeable)


def _root(array: np.ndarray) -> tuple[np.ndarray, object | None]:
    """Return the array to which a view finally refers, and the object that owns the memory of this array, or None."""
    base = array.base
    while True:
        if isinstance(base, memoryview):
            base = base.obj
        if not isinstance(base, np.ndarray):
            return array, base
        array, base = base, base.base


def _buffer(exporter: Any) -> Extent | None:
    """Return the whole memory that an object exports; None if it does not export contiguous bytes."""
    try:
        whole = np.frombuffer(exporter, np.uint8)
    except (TypeError, ValueError, BufferError, AttributeError):
        return None
    return Extent(whole.ctypes.data, whole.size)


def _of_torch(tensor: Any) -> HostArray:
    # The function uses the device of the storage, because an adapter may change the device that the tensor reports.
    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":
        raise TypeError(
            f"the tensor is on {storage.device}, but the simulator accesses only the memory of the CPU; pass "
            "tensor.cpu()"
        )
    owner = _storage_owner(tensor)
    # A torch storage is not resizable if another library owns its memory, such as a read-only file.
    is_own = storage.resizable()
    address = storage.data_ptr() + tensor.storage_offset() * tensor.element_size()
    return HostArray(address, owner, is_own or not _has_read_only_pages(owner.extent))


def _storage_owner(tensor: Any) -> Owner:
    """Return the owner of a tensor's storage; all tensors of a storage have the same owner."""
    storage = tensor.untyped_storage()
    return Owner(storage, _of_storage, f"the {type(storage).__name__} of {storage.nbytes()} bytes")


def _has_read_only_pages(memory: Extent) -> bool:
    """Return whether some pages are read-only, so that a write would end the process.

    A tensor has no flag for read-only memory. The result is False on systems other than Linux.
    """
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    for line in lines:
        place, may = line.split(maxsplit=2)[:2]
        begin, end = (int(each, 16) for each in place.split("-"))
        if "w" not in may and memory.overlaps(Extent(begin, end - begin)):
            return True
    return False


def _of_storage(storage: Any) -> Extent:
    return Extent(storage.data_ptr(), storage.nbytes())


def _of_dlpack(array: Any) -> HostArray:
    """Return the array of an object that exports DLPack.

    Keep the exported object alive, because it may be a copy.
    """
    try:
        exported = np.from_dlpack(array)
    except (TypeError, AttributeError, BufferError, RuntimeError) as error:
        raise TypeError(
            f"{type(array).__name__} is not a NumPy array or CPU tensor; pass one, or an int for an address"
        ) from error
    found = _byte_bounds(exported)
    owner = Owner(array, lambda _: found, _described(exported), exported, is_whole=False)
    return HostArray(exported.ctypes.data, owner, exported.flags.writeable or _is_unversioned(exported.base))


def _is_unversioned(capsule: object) -> bool:
    """Return whether a DLPack capsule has no flag for read-only memory; NumPy treats its array as read-only."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return type(capsule).__name__ == "PyCapsule" and name(capsule) == _UNVERSIONED


def _described(array: np.ndarray) -> str:
    return f"the array of shape {array.shape}, {array.dtype}"


def _byte_bounds(array: np.ndarray) -> Extent:
    """Return the range from the lowest element to the end of the highest element of an array.

    The strides of the array may be negative.
    """
    if not array.size:
        return Extent(array.ctypes.data, 0)
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return Extent(array.ctypes.data + sum(min(0, each) for each in reach), sum(map(abs, reach)) + array.itemsize)
