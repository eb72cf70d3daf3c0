"""Tests of the tool that replaces a script's imports of cuda.core's tensor maps."""

import re
import sys
from pathlib import Path

import pytest
from cuda import core

import cuda_tma

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation"))

import run_core_scripts  # noqa: E402


@pytest.mark.parametrize(
    "name", ["Program", "ProgramOptions", "LaunchConfig", "Stream", "Buffer", "Kernel", "ObjectCode"]
)
def test_cuda_cores_names_are_its_own(name):
    assert getattr(cuda_tma, name) is getattr(core, name) and name not in cuda_tma.__all__


def test_every_public_name_of_cuda_cores_tensor_maps_is_ours():
    theirs = pytest.importorskip("cuda.core._tensor_map")
    public = {name for name in vars(theirs) if name.startswith("TensorMap")}
    assert len(public) > 6 and all(hasattr(cuda_tma, name) for name in public)


def test_imports_are_changed_and_nothing_else():
    source = (
        "import os\nfrom cuda.core import (\n    Device,\n    system,\n    launch,\n)\n"
        "from cuda.core.utils import StridedMemoryView\nfrom cuda.pathfinder import x\nprint('cuda.core')\n"
    )
    assert run_core_scripts.with_import_changed(source) == (
        "import os\nfrom cuda_tma import Device, launch\nfrom cuda.core import system\n"
        "from cuda_tma import StridedMemoryView\nfrom cuda.pathfinder import x\nprint('cuda.core')\n"
    )
    changed = run_core_scripts.with_import_changed(source, ("Device",))
    assert "from conftest import Device\nfrom cuda.core import system\nfrom cuda_tma import launch\n" in changed


def test_differences_have_reasons():
    found = run_core_scripts.differences()
    assert len(found) > 10 and all(name.startswith("test_") and len(why) > 20 for name, why in found.items())
    assert "TypeError" in found["test_cannot_instantiate_directly"]
    assert compile(run_core_scripts.CONFTEST.format(differences=found), "conftest", "exec")


def test_the_page_is_true():
    """The table in the documentation contains exactly the refusals that need no GPU."""
    with pytest.raises(TypeError, match="make a TensorMapDescriptor with cuda_tma.create_tensor_map"):
        cuda_tma.TensorMapDescriptor()
    with pytest.raises(ValueError, match="42 is not a TensorMapDataType; choose one of"):
        cuda_tma.TensorMapOptions((64,), data_type=42)
    assert re.search(r"^from cuda_tma import .*StridedMemoryView", run_core_scripts.PAGE.read_text(), re.MULTILINE)
