"""Tests of memory that a kernel on the simulator may read but not write."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate import Config, Device
from tests.support.array_kernels import FOUR, ONE_TO_FOUR, Exporter, zeros


def read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("is_known", [False, True])
def test_a_read_only_view_of_a_writeable_array_is_not_written(gpu, put, is_known):
    array = zeros(4)
    if is_known:
        gpu.launch(FOUR, put, array).raise_for_errors()
        array[:] = 0
    (finding,) = gpu.launch(FOUR, put, read_only(array)).findings
    assert finding.kind == "out-of-bounds"
    assert finding.message.endswith(" in the array of shape (4,), float32, which is read-only")
    assert array.tolist() == [0, 0, 0, 0]
    gpu.launch(FOUR, put, array).raise_for_errors()
    assert array.tolist() == ONE_TO_FOUR


def test_another_view_in_the_same_launch_is_written(gpu, add):
    array = np.ones(4, np.float32)
    gpu.launch(FOUR, add, read_only(array), array).raise_for_errors()
    assert array.tolist() == [2, 2, 2, 2]


def test_an_address_of_a_writeable_view_is_written(gpu, add):
    array = np.ones(4, np.float32)
    gpu.launch(FOUR, add, read_only(array), gpu.address(array)).raise_for_errors()
    assert array.tolist() == [2, 2, 2, 2]


def test_a_pointer_in_memory_is_of_a_launch_before(gpu, ptx):
    """In the test, the second launch writes to an array of the first launch by a pointer in memory."""
    array, ones = zeros(4), np.ones(4, np.float32)
    kernel = gpu.load(ptx, "keep")
    gpu.launch(Config(1, 1), kernel, array).raise_for_errors()
    second = gpu.load(ptx, "put_kept")
    gpu.variable(second, "kept")[:] = gpu.variable(kernel, "kept")
    gpu.launch(FOUR, second, read_only(ones)).raise_for_errors()
    assert array.tolist() == [6, 6, 6, 6]


def test_an_object_that_exports_read_only_memory_is_not_written(gpu, put):
    array = read_only(zeros(4))
    (finding,) = gpu.launch(FOUR, put, Exporter(array, versioned=True)).findings
    assert "which is read-only" in finding.message
    assert array.tolist() == [0, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_tensor_over_a_read_only_file_is_read_and_not_written(ptx, torch, tmp_path):
    """If a kernel wrote to the read-only pages of a mapped file, the process would end."""
    np.ones(4096, np.float32).tofile(tmp_path / "ones")
    tensor = torch.from_numpy(np.memmap(tmp_path / "ones", np.float32, "r"))
    gpu, out = Device(schedules=3), zeros(4)
    gpu.launch(FOUR, gpu.load(ptx, "add"), tensor, out).raise_for_errors()
    assert out.tolist() == [1, 1, 1, 1]
    (finding,) = gpu.launch(FOUR, gpu.load(ptx, "put"), tensor).findings
    assert "which is read-only" in finding.message


def test_a_read_only_file_is_read_under_several_schedules(ptx, tmp_path):
    np.ones(4096, np.float32).tofile(tmp_path / "ones")
    file = np.memmap(tmp_path / "ones", np.float32, "r")
    gpu, out = Device(schedules=3), zeros(4)
    gpu.launch(FOUR, gpu.load(ptx, "add"), file, out).raise_for_errors()
    assert out.tolist() == [1, 1, 1, 1]
