"""Tests of host arrays as kernel arguments, with their owners and with read-only pages."""

import mmap

import numpy as np
import pytest

from cuda_tma.simulate._memory import host_array as module
from cuda_tma.simulate._memory.host_array import Extent, Owner, host_array


class WithoutWeakReferences:
    __slots__ = ()


def test_an_owner_without_weak_references_is_kept():
    watched = WithoutWeakReferences()
    owner = Owner(watched, lambda _: Extent(64, 8), "it")
    assert owner.watched() is watched and owner.is_current() and owner.extent == (64, 8)


def test_an_owner_is_not_kept_and_its_memory_may_move():
    places = {"now": Extent(64, 8)}
    watched = np.zeros(2)
    owner = Owner(watched, lambda _: places["now"], "it")
    assert owner.is_current()
    places["now"] = Extent(128, 8)
    assert not owner.is_current()
    del watched
    assert owner.watched() is None and not owner.is_current()


@pytest.mark.parametrize("given", [object(), "text", 7.5])
def test_an_object_that_is_not_an_array(given):
    with pytest.raises(TypeError, match=f"{type(given).__name__} is not a NumPy array or CPU tensor; pass one"):
        host_array(given)


def test_only_read_only_pages_are_read_only():
    pages = mmap.mmap(-1, 4 * mmap.PAGESIZE, prot=mmap.PROT_READ)
    address = np.frombuffer(pages, np.uint8).ctypes.data
    assert module._has_read_only_pages(Extent(address, 1)) and module._has_read_only_pages(Extent(address - 1, 2))
    # A large array has a separate mapping of memory.
    written = np.ones(64 << 20, np.uint8)
    assert not module._has_read_only_pages(Extent(written.ctypes.data, written.nbytes))
