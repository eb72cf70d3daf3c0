"""Tests of launches that continue or end after a finding. A launch continues if hardware continues."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.__main__ import main
from cuda_tma.simulate import Suppression

# As in ThunderKittens, each lane of a warp initializes the mbarrier. An H200 continues after a second mbarrier.init
# (recorded).
SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

__device__ void init(Barrier& barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
        :: "r"(static_cast<unsigned>(__cvta_generic_to_shared(&barrier))), "r"(count) : "memory");  // INIT
}

extern "C" __global__ void k(const __grid_constant__ TensorMap source, int* out) {
    __shared__ alignas(128) int tile[64];
    __shared__ Barrier full, other;
    const int t = threadIdx.x;
    BODY
    fence_barrier_init();
    __syncthreads();
    if (t == 0) {
        full.arrive_expect_tx(256);
        load(tile, source, full, Coordinates{0});
    }
    full.wait(0);
    out[t] = tile[t];
}
"""
BODIES = {
    "by a warp": "if (t < 32) init(full, 1);",
    "twice": "if (t == 0) { init(full, 2); init(full, 1); }",
    "in use": "if (t == 0) { init(full, 2); full.arrive(); init(full, 1); }",
    "of 0 arrivals": "if (t == 0) { init(full, 1); init(other, 0); }",
    "of too many arrivals": "if (t == 0) { init(full, 1); init(other, 1 << 20); }",
    "by a thread": "if (t == 0) { init(full, 1); init(other, 1); }",
    "out of bounds": "if (t == 0) { init(full, 1); out[1 << 20] = 1; }",
}
COUNTS = {"by a warp": 31, "twice": 1, "in use": 1, "of 0 arrivals": 1, "of too many arrivals": 1}
INIT = 1 + [line.endswith("// INIT") for line in SOURCE.splitlines()].index(True)


def launched(body: str, *suppressions: Suppression) -> tuple[simulate.Report, np.ndarray]:
    gpu = simulate.Device(suppressions=suppressions, schedules=4)
    given, out = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    kernel = gpu.compile(SOURCE.replace("BODY", BODIES[body]), "k")
    return gpu.launch(simulate.Config(1, 64), kernel, gpu.create_tensor_map(given, box_dim=(64,)), out), out


@pytest.mark.parametrize("body", COUNTS)
def test_a_launch_continues_after_a_second_init(body):
    report, out = launched(body)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.ends_launch) == ("barrier-use", "error", False)
    assert INIT - 2 <= finding.source[0].line <= INIT and finding.count == COUNTS[body]
    assert out.tolist() == [*range(64)]


def test_one_init_by_one_thread_is_silent():
    report, out = launched("by a thread")
    assert report.findings == () and out.tolist() == [*range(64)]


def test_a_launch_with_a_suppressed_init_is_checked():
    report, out = launched("by a warp", Suppression("barrier-use", "k", "every lane writes the same state"))
    assert report.findings == () and len(report.suppressed) == 1 and out.tolist() == [*range(64)]
    report.raise_for_errors()


def test_a_suppressed_end_of_a_launch_is_not_clean():
    suppression = Suppression("out-of-bounds", "k", "the array is larger on the GPU")
    report, out = launched("out of bounds", suppression)
    (finding,) = report.errors
    assert finding.ends_launch and finding.message.startswith("a suppression covers this finding, but the launch ends")
    assert "beyond the end of the array" in finding.happened and (out == -1).all()
    assert [each.kind for each in report.suppressed] == ["out-of-bounds"] and report.unused_suppressions == ()
    with pytest.raises(simulate.SimulationError, match="the rest is not judged"):
        report.raise_for_errors()


@pytest.mark.parametrize(("statement", "status"), [("out[1 << 20] = 1;", 1), ("out[0] = 1;", 0)])
def test_the_command_does_not_report_a_clean_run(tmp_path, capsys, statement, status):
    source = tmp_path / "k.cu"
    source.write_text(f'extern "C" __global__ void k(int* out) {{ {statement} }}')
    arguments = ["sanitize", str(source), "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "int32[64]"]
    assert main([*arguments, "--suppress", "out-of-bounds:k:the array is larger"]) == status
    assert ("the rest is not judged" in capsys.readouterr().out) == bool(status)
