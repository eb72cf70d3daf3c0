"""Tests of the tool that plants faults which the GPU tests must detect."""

import pytest

from evaluation.mutation import plant_gpu_faults
from evaluation.mutation.plant_gpu_faults import FAULTS, ROOT
from evaluation.mutation.trials import Folder


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_one_place(fault):
    source = (ROOT / fault.path).read_text()
    assert source.count(fault.before) == 1


def test_the_file_is_restored_after_the_tests(tmp_path, monkeypatch):
    fault, path = FAULTS[0], tmp_path / FAULTS[0].path
    path.parent.mkdir()
    path.write_text(f"a {fault.before} b")
    monkeypatch.setattr(plant_gpu_faults, "failure", lambda folder, tests, device: path.read_text())
    assert plant_gpu_faults.planted(Folder(tmp_path), fault, "tests", "0") == f"a {fault.after} b"
    assert path.read_text() == f"a {fault.before} b"
    path.write_text(2 * fault.before)
    with pytest.raises(SystemExit, match="2 times; change this list"):
        plant_gpu_faults.planted(Folder(tmp_path), fault, "tests", "0")
