"""Tests that the reference, ``__all__`` and the stubs list the same public names. All other names begin with an
underscore."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import cuda_tma

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

import public_names  # noqa: E402

MOST_OBJECTS = 175
MOST_TOP_NAMES = 32
ENTRY = re.compile(
    r"^\.\. (?:(currentmodule|py:module|automodule)|(?:auto|py:)(\w+)):: (\S+)\n((?:   :.*\n)*)", re.MULTILINE
)
MODULES = public_names.public_modules()
OBJECTS = public_names.objects()
# A class with this name exists for a GPU and for the simulator, so that a program can replace one class by the other.
TWICE = {"Device"}


def entries() -> Counter[str]:
    """Count the entries of each dotted name in the reference."""
    found: Counter[str] = Counter()
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        module = ""
        for directive, _, name, options in ENTRY.findall(page.read_text()):
            module = name if directive else module
            if directive and directive != "currentmodule":
                found[name] += 1
            if directive == "automodule" and "no-members" not in options:
                members = importlib.import_module(name)
                excluded = re.findall(r"\w+", (re.findall(r":exclude-members: (.*)", options) or [""])[0])
                has_docstring = (n for n in members.__all__ if isinstance(getattr(members, n), (type, FunctionType)))
                found.update(f"{name}.{each}" for each in has_docstring if each not in excluded)
            elif not directive:
                found[name if name.startswith("cuda_tma.") else f"{module}.{name}"] += 1
    return found


def test_a_name_is_public_if_and_only_if_the_reference_has_it():
    found = entries()
    assert [name for name, count in found.items() if count > 1] == []
    assert sorted(found) == sorted([*MODULES, *OBJECTS])


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_lists_each_name_that_it_defines(module):
    assert public_names.defined(module) - set(public_names.declared(module)) == set()


def test_the_numbers_of_names_have_limits():
    assert len(MODULES) + len(OBJECTS) <= MOST_OBJECTS
    assert len(cuda_tma.__all__) <= MOST_TOP_NAMES


def test_no_two_public_classes_have_one_name():
    names = Counter(name.rpartition(".")[2] for name, value in OBJECTS.items() if isinstance(value, type))
    assert {name for name, count in names.items() if count > 1} == TWICE


def test_the_stub_of_the_package_has_its_names():
    stub = ast.parse((ROOT / "cuda_tma" / "__init__.pyi").read_text())
    imported = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assigned = {node.targets[0].id: node.value for node in stub.body if isinstance(node, ast.Assign)}
    listed = ast.literal_eval(assigned["__all__"])
    assert listed == cuda_tma.__all__
    submodules = {name.split(".")[1] for name in MODULES if name.count(".") == 1}
    assert imported - {*listed} == {*submodules, *cuda_tma._HOMES}
    assert {*assigned} == {"__all__", "TensorMapDescriptorOptions"}


@pytest.mark.parametrize("module", [name for name in MODULES if name.count(".") == 1 and name != "cuda_tma.torch"])
def test_a_module_is_an_attribute_without_an_import(module):
    name = module.split(".")[1]
    program = f"import cuda_tma; print(cuda_tma.{name}.__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == f"{module}\n"


def test_an_import_loads_nothing_heavy():
    program = """import sys, cuda_tma
heavy = {"cuda_tma.simulate", "cuda_tma.testing", "matplotlib", "torch", "hypothesis"}
print(sorted(heavy & {*sys.modules}))
print([name for name in dir(cuda_tma) if name.startswith("_") and not name.startswith("__")])
print(hasattr(cuda_tma, "swizzle"), "simulate" in dir(cuda_tma), "simulate" in cuda_tma.__all__)"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "[]\n[]\nFalse True False\n"


@pytest.mark.parametrize("name", MODULES)
def test_private_modules_do_not_show(name):
    if name == "cuda_tma.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    # The module cuda_tma.torch needs torch.
    shown = {each: getattr(module, each, None) for each in dir(module)}
    private = [each.__name__ for each in shown.values() if isinstance(each, ModuleType) and "._" in each.__name__]
    assert private == []
    assert {*module.__all__} <= {*shown}


def test_names_of_cuda_core_are_its_objects():
    core = importlib.import_module("cuda.core")
    names = [name for name, home in cuda_tma._HOMES.items() if home == "cuda.core"]
    assert len(names) == 16
    assert all(getattr(cuda_tma, name) is getattr(core, name) for name in names)
    assert cuda_tma.TensorMapDescriptorOptions is cuda_tma.TensorMapOptions
    with pytest.raises(AttributeError, match="module 'cuda_tma' has no attribute 'Nothing'"):
        _ = cuda_tma.Nothing
