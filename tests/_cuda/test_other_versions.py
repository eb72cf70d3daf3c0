"""Tests with a version of cuda.core that lacks tensor maps, and with programs of another compiler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cuda_tma import _compile_kernel
from cuda_tma._cuda import core
from cuda_tma.emulate._whole import whole
from cuda_tma.params import TiledParams
from cuda_tma.simulate import _watch


def test_a_view_without_tensor_maps(monkeypatch):
    monkeypatch.setattr(core, "Buffer", SimpleNamespace(from_handle=lambda *given, **settings: given))
    view = SimpleNamespace(from_buffer=lambda *given, **settings: SimpleNamespace())
    monkeypatch.setattr(core, "StridedMemoryView", view)
    with pytest.raises(RuntimeError, match=r"the installed cuda\.core has no tensor maps; install cuda-core 1\.0"):
        core.core_descriptor(bytes(128), 4096, None)


def test_a_program_of_another_compiler_has_no_text():
    with pytest.raises(TypeError, match="the Program has the backend NVVM; pass the PTX of its source to watch"):
        _watch._text_of_program(SimpleNamespace(backend="NVVM"))


def test_an_illegal_map_has_no_chunks():
    fields = {"data_type": 7, "global_address": 0, "global_dim": (64, 8), "global_strides": (256,)}
    legal = TiledParams(**fields, box_dim=(32, 8), element_strides=(1, 1))
    assert whole(legal) is not None and whole(TiledParams(**fields, box_dim=(300, 8), element_strides=(1, 1))) is None


def test_the_error_of_a_device_is_kept(monkeypatch):
    def fail():
        raise MemoryError("no context")

    monkeypatch.setattr(_compile_kernel, "Device", fail)
    monkeypatch.setattr(_compile_kernel, "require_driver", lambda: None)
    with pytest.raises(MemoryError, match="no context"):
        _compile_kernel._current_target()
