"""Run scripts and tests of a clone of NVIDIA's cuda-python on a GPU, with one import changed to cuda_tma.

The script imports names that cuda_tma has from cuda_tma, and all other names from their original module. Files whose
names begin with test_ run under pytest, with the expected differences of docs/cuda_core.md. All other files run as
scripts.

Examples
--------
    python evaluation/run_core_scripts.py cuda-python/cuda_core/{examples/tma_tensor_map.py,tests/test_tensor_map.py}
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cuda_tma

PAGE = Path(__file__).parent.parent / "docs" / "cuda_core.md"
MODULES = ("cuda.core", "cuda.core.utils", "cuda.core._tensor_map")
# CONFTEST defines the fixtures that the examples use: a device, and functions that create private objects of cuda.core.
CONFTEST = '''
import pytest
from cuda.core import Device, ManagedMemoryResource

import cuda_tma

DIFFERENCES = {differences!r}


@pytest.fixture
def init_cuda():
    Device(0).set_current()
    return Device(0)


def skip_if_managed_memory_unsupported(device):
    pytest.skip("managed memory of several devices is not tested here")


def create_managed_memory_resource_or_skip(*args, **keywords):
    return ManagedMemoryResource(*args, **keywords)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.originalname in DIFFERENCES:
            item.add_marker(pytest.mark.xfail(reason=DIFFERENCES[item.originalname], strict=True))


class TensorMapDescriptor:
    """Ours, with the private makers of cuda.core's."""

    def __new__(cls):
        return cuda_tma.TensorMapDescriptor()

    @staticmethod
    def _from_tiled(view, box_dim=None, **options):
        return cuda_tma.create_tensor_map(view, box_dim=box_dim, **options)

    @staticmethod
    def _from_im2col(view, **options):
        return cuda_tma.create_tensor_map(view, cuda_tma.TensorMapIm2colOptions(**options))

    @staticmethod
    def _from_im2col_wide(view, **options):
        return cuda_tma.create_tensor_map(view, cuda_tma.TensorMapIm2colWideOptions(**options))
'''


def differences() -> dict[str, str]:
    """Return the tests that differ, and the reasons."""
    rows = re.findall(r"^\| (`test_.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: why for names, why in rows for name in re.findall(r"`(\w+)`", names)}


def with_import_changed(source: str, own: tuple[str, ...] = ()) -> str:
    """Return the source with imports from cuda_tma for the names that cuda_tma has. `own` contains the names of a
    conftest.
    """
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            lines[node.lineno - 1 : node.end_lineno] = imports(node.module, [each.name for each in node.names], own)
    return "\n".join(lines) + "\n"


def imports(module: str, names: list[str], own: tuple[str, ...]) -> list[str]:
    found: dict[str, list[str]] = {}
    for name in names:
        source = "conftest" if name in own else "cuda_tma" if hasattr(cuda_tma, name) else module
        found.setdefault(source, []).append(name)
    return [f"from {source} import {', '.join(each)}" for source, each in found.items()]


def run(file: Path, folder: Path) -> int:
    """Run one file, and return the exit status of the run."""
    is_test = file.name.startswith("test_")
    changed = folder / file.name
    changed.write_text(with_import_changed(file.read_text(), ("TensorMapDescriptor",) if is_test else ()))
    if not is_test:
        return subprocess.run([sys.executable, str(changed)], timeout=300).returncode
    (folder / "conftest.py").write_text(CONFTEST.format(differences=differences()))
    command = [sys.executable, "-m", "pytest", "-q", "-rsxX", "--tb=short", "-p", "no:cacheprovider", str(changed)]
    return subprocess.run(command, cwd=folder, timeout=300).returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    failed = 0
    for file in parser.parse_args(arguments).files:
        with tempfile.TemporaryDirectory() as folder:
            status = run(file, Path(folder))
        print(f"{file.name}: {'as before' if status == 0 else f'failed with {status}'}", flush=True)
        failed += status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
