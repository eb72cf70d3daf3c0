"""Tests that a session reports the launches which a program makes on its own simulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_tma._intercept.launched import Launched
from cuda_tma._intercept.options import Options
from cuda_tma._intercept.ours.simulated import reporting_device
from cuda_tma._intercept.session import Session
from cuda_tma.simulate import Config

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry {name}(.param .u64 out)
{{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd2], %r1;
    ret;
}}
"""
# With the configuration RACE, 64 threads store to one word. With WORD, only one thread stores.
RACE, WORD = Config(1, 64), Config(1, 1)


class Ended(list[Launched]):
    def begun(self, launch: Launched) -> None:
        assert launch.report is None

    def ended(self, launch: Launched) -> None:
        self.append(launch)


@pytest.fixture
def ended() -> Ended:
    return Ended()


def _device(ended: Ended, options: Options, **keywords: Any) -> Any:
    return reporting_device(Session(options, ended))(**keywords)


def _kernel(device: Any, name: str = "store") -> Any:
    return device.load(PTX.format(name=name), name)


def test_the_session_has_the_findings_that_the_program_has(ended: Ended) -> None:
    gpu = _device(ended, Options())
    report = gpu.launch(RACE, _kernel(gpu), np.zeros(1, np.uint32))
    (launch,) = ended
    assert [each.kind for each in report.errors] == ["race"]
    assert [each.kind for each in launch.report.errors] == ["race"]
    assert (launch.kernel, launch.runtime, launch.config) == ("store", "cuda_tma.simulate", RACE)
    assert launch.launched_at.file == __file__


def test_launches_of_a_device_without_sanitizer_are_not_checked(ended: Ended) -> None:
    gpu = _device(ended, Options(), sanitize=False)
    gpu.launch(RACE, _kernel(gpu), np.zeros(1, np.uint32))
    assert [(each.is_judged, each.report) for each in ended] == [(False, None)]


def test_a_filter_leaves_a_launch_out(ended: Ended) -> None:
    gpu = _device(ended, Options(kernel="other"))
    gpu.launch(RACE, _kernel(gpu), np.zeros(1, np.uint32))
    gpu.launch(RACE, _kernel(gpu, "another"), np.zeros(1, np.uint32))
    assert [(each.kernel, each.is_judged) for each in ended] == [("store", False), ("another", True)]


def test_a_refused_launch_is_skipped_with_the_reason(ended: Ended) -> None:
    gpu = _device(ended, Options())
    with pytest.raises(TypeError):
        gpu.launch(WORD, _kernel(gpu))
    assert [each.skipped.partition(":")[0] for each in ended] == ["TypeError"]


def test_each_launch_of_a_row_has_its_report(ended: Ended) -> None:
    gpu = _device(ended, Options())
    kernel, out = _kernel(gpu), np.zeros(1, np.uint32)
    early = Config(1, 1, programmatic_stream_serialization=True)
    reports = gpu.launch_all([(WORD, kernel, out), (early, kernel, out)])
    assert len(reports) == len(ended) == 2
    assert [len(each.report.findings) for each in ended] == [len(each.findings) for each in reports]
