"""Tests of Triton's cache, which stores equal kernels of two files separately, so that a finding names the running
program's file."""

from __future__ import annotations

import pytest

from tests.support.adapted import ran

SCRIPT = """import torch, triton, triton.language as tl
@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n))
x, y = torch.zeros(100, device="cuda"), torch.zeros(100, device="cuda")
copy[(1,)](x, y, 100, B=128)
"""


def test_the_same_kernel_of_two_files_has_the_file_that_runs(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    for name in ("one.py", "two.py"):
        script = tmp_path / name
        script.write_text(SCRIPT)
        done = ran(script, TRITON_CACHE_DIR=str(tmp_path / "cache"))
        (launch,) = done.launches
        (found,) = [each for each in launch["findings"] if each["severity"] == "error"]
        assert found["kind"] == "out-of-bounds"
        assert [str(script), 5] in found["places"]
