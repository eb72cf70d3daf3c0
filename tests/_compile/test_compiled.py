"""Tests of the compilations that the package keeps for kernels."""

from weakref import WeakKeyDictionary

import pytest

from cuda_tma._compile import compiled


class Kernel:
    pass


@pytest.fixture
def held(monkeypatch):
    """Return a list with an entry for each access to the kept compilations. The entry is true if the thread held the
    lock."""
    found = []

    class Guarded(WeakKeyDictionary):
        def get(self, key, default=None):
            found.append(compiled._lock.locked())
            return super().get(key, default)

        def __setitem__(self, key, value):
            found.append(compiled._lock.locked())
            super().__setitem__(key, value)

    monkeypatch.setattr(compiled, "_known", Guarded())
    return found


def test_a_compilation_is_kept_as_long_as_its_kernel(held):
    kernel = Kernel()
    made = compiled.Compiled("k", "k", "", "sm_90a", "", b"")
    compiled.remember(kernel, made)
    assert compiled.compiled_of(kernel) is made and compiled.compiled_of(Kernel()) is None
    assert held == [True] * 3 and len(compiled._known) == 1
    del kernel
    assert len(compiled._known) == 0
