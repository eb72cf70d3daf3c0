"""Tests of the simulator's events, which are a closed set of frozen values."""

import dataclasses
from typing import get_args

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._ptx import Instruction
from cuda_tma.simulate._sanitize import Sanitizer
from cuda_tma.simulate._warps import events, tensor_events

ABSTRACT = {events.BarrierEvent, events.MbarrierEvent, events.Fence, tensor_events.TensorEvent, tensor_events.Touch}


def test_the_set_contains_every_class_of_the_module():
    modules = events, tensor_events
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    classes = {each for each in found if each.__module__ in {module.__name__ for module in modules}}
    assert {*get_args(events.Event)} == classes - ABSTRACT


@pytest.mark.parametrize("event", get_args(events.Event), ids=lambda each: each.__name__)
def test_an_event_is_frozen(event):
    names = [field.name for field in dataclasses.fields(event)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event(*[0] * len(names)), names[0], 1)


FENCES = {
    "fence.sc.cta": (events.MemoryFence, {"scope": "cta"}),
    "fence.acq_rel.gpu": (events.MemoryFence, {"scope": "gpu"}),
    "membar.gl": (events.MemoryFence, {"scope": "gl"}),
    "fence.proxy.async": (events.AsyncProxyFence, {"of_global": True, "of_shared": True}),
    "fence.proxy.async.global": (events.AsyncProxyFence, {"of_global": True, "of_shared": False}),
    "fence.proxy.async.shared::cta": (events.AsyncProxyFence, {"of_global": False, "of_shared": True}),
    "fence.proxy.alias": (events.OtherProxyFence, {}),
    "fence.proxy.tensormap::generic.release.gpu": (events.MapRelease, {"scope": "gpu"}),
    "fence.proxy.tensormap::generic.acquire.sys [%rd1], 128": (events.MapAcquire, {"scope": "sys"}),
    "fence.mbarrier_init.release.cluster": (events.InitFence, {}),
}
PTX = """.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a) {{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; {fence}; ret; }}
"""


@pytest.mark.parametrize("fence", FENCES)
def test_a_fence_becomes_the_event_of_its_proxy(fence, monkeypatch):
    seen, event = [], Sanitizer.event
    monkeypatch.setattr(Sanitizer, "event", lambda self, each: (seen.append(each), event(self, each)))
    gpu = simulate.Device()
    report = gpu.launch(simulate.Config(1, 1), gpu.load(PTX.format(fence=fence), "kernel"), np.zeros(128, np.uint8))
    assert report.findings == ()
    (found,) = [each for each in seen if isinstance(each, events.Fence)]
    kind, facts = FENCES[fence]
    assert type(found) is kind
    assert {name: getattr(found, name) for name in facts} == facts


def test_a_sanitizer_refuses_a_value_that_is_not_an_event(monkeypatch):
    began = []
    monkeypatch.setattr(Sanitizer, "access", lambda self, access: began.append(self))
    gpu = simulate.Device()
    text = PTX.format(fence="st.global.u64 [%rd1], 0")
    gpu.launch(simulate.Config(1, 1), gpu.load(text, "kernel"), np.zeros(8, np.uint8))
    with pytest.raises(AssertionError, match="no case for the event"):
        began[0].event(Instruction(("ret",)))
