"""Tests that type checkers accept every example in README and in the docstrings.

The type checkers treat all names of cuda.core and of torch as untyped.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import cuda_tma

ROOT = Path(__file__).parent.parent
# The import is only for type checkers, because the package may not be installed.
PLACE = str(Path(cuda_tma.__file__).parents[1])
UNKNOWN = ("cuda", "cupy", "torch", "matplotlib", "hypothesis", "ml_dtypes", "tensor_layouts", "rich")
MYPY = "[mypy]\nstrict = true\n" + "".join(
    f"[mypy-{name}.*]\nignore_missing_imports = true\nfollow_imports = skip\n" for name in UNKNOWN
)

# The program of a user contains the expected types.
PROGRAM = """
from typing_extensions import assert_type
import cuda_tma

options = cuda_tma.TensorMapOptions([32, 32], data_type="bfloat16", swizzle="128B")
assert_type(options.swizzle, cuda_tma.TensorMapSwizzle)
assert_type(options.box_dim, tuple[int, ...])
device = cuda_tma.Device()
assert_type(device, cuda_tma.Device)
assert_type(device.arch, str)
assert_type(device.compute_capability.major, int)
descriptor = device.create_tensor_map(object(), box_dim=(32, 64), swizzle=cuda_tma.TensorMapSwizzle.SWIZZLE_64B)
assert_type(descriptor, cuda_tma.TensorMapDescriptor)
assert_type(descriptor.tx_bytes, int)
descriptor.smem_layout()
view = cuda_tma.StridedMemoryView.from_any_interface(object(), stream_ptr=-1)
assert_type(view, cuda_tma.StridedMemoryView)
assert_type(view.as_tensor_map((32, 32)), cuda_tma.TensorMapDescriptor)
try:
    cuda_tma.decode(b"")
except cuda_tma.TensorMapError as error:
    assert_type(error.violations, tuple[cuda_tma.rules.Violation, ...])
"""
WRONG = """
import cuda_tma

cuda_tma.TensorMapOptions(box_dim=(64, 64), swizzle=1.5)
cuda_tma.Device().create_tensor_map(object(), swizle="128B")
cuda_tma.Device("0")
"""


def modules() -> list[ModuleType]:
    found = [name for _, name, _ in pkgutil.walk_packages(cuda_tma.__path__, "cuda_tma.")]
    need_runtimes = ("cuda_tma._intercept.", *(("cuda_tma.torch",) if find_spec("torch") is None else ()))
    names = [name for name in found if "__main__" not in name and not name.startswith(need_runtimes)]
    return [cuda_tma, *map(importlib.import_module, names)]


def docstring_programs() -> dict[str, str]:
    """Return the examples in docstrings as programs. An example is the text after ``>>>``, or indented text after
    ``::``."""
    programs = {}
    public = {name for module in modules() if "._" not in module.__name__ for name in getattr(module, "__all__", ())}
    for module in modules():
        for found in doctest.DocTestFinder().find(module):
            shown = "".join(example.source for example in found.examples if not example.exc_msg)
            shown += "\n".join(map(textwrap.dedent, re.findall(r"::\n\n((?: {4,}.*\n|\n)+)", found.docstring)))
            inside = found.name.removeprefix(module.__name__).split(".")
            if is_python(shown) and (len(inside) == 1 or inside[1] in public):
                programs[found.name] = with_names(shown, vars(module))
    return programs


def is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def with_names(program: str, known: dict[str, object]) -> str:
    """Return the program with imports of the names of its module. Names that an example does not define have no
    type."""
    nodes = [*ast.walk(ast.parse(program))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    used = {node.id for node in names} - made - set(vars(builtins))
    return "".join(sorted(declaration(name, known) for name in used)) + program


def declaration(name: str, known: dict[str, object]) -> str:
    if name not in known:
        return {"cuda_tma": "import cuda_tma\n", "np": "import numpy as np\n"}.get(
            name, f"import typing\n{name} = typing.cast(typing.Any, None)\n"
        )
    value = known[name]
    if inspect.ismodule(value):
        return f"import {value.__name__} as {name}\n"
    source = getattr(value, "__module__", None) or known["__name__"]
    return f"from {source} import {getattr(value, '__name__', name)} as {name}\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """Return a folder with every example as a file, and with the configuration of both type checkers."""
    folder = tmp_path_factory.mktemp("programs")
    fragments = re.findall(r"```python(?: gpu)?\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    texts = {"README": "\n".join(fragments), "PROGRAM": PROGRAM, "WRONG": WRONG, **docstring_programs()}
    assert len(texts) > 40
    for name, text in texts.items():
        (folder / f"{name.replace('.', '_')}.py").write_text(text)
    (folder / "mypy.ini").write_text(MYPY)
    settings = {"reportMissingImports": False, "reportMissingModuleSource": False, "extraPaths": [PLACE]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


def test_mypy_accepts_every_example(programs):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--cache-dir=cache", "--no-error-summary", "."]
    done = subprocess.run(command, cwd=programs, env=os.environ | {"MYPYPATH": PLACE}, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if re.match(r"\w+\.py:\d+: error: ", line)]
    assert [error for error in errors if not error.startswith("WRONG.py")] == [], done.stderr
    assert [int(error.split(":")[1]) for error in errors] == [4, 5, 6], done.stderr


def test_pyright_accepts_every_example(programs):
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", f"--pythonpath={sys.executable}", "--project", "."]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error" and "unknown import symbol" not in each["message"]]
    told = [(Path(each["file"]).stem, each["range"]["start"]["line"] + 1, each["message"]) for each in errors]
    assert [each for each in told if each[0] != "WRONG"] == [], done.stderr
    assert [line for _, line, _ in told] == [4, 5, 6], done.stderr


def test_the_package_is_found_next_to_a_folder_of_its_name(tmp_path):
    """In the parent folder of a clone, `cuda_tma` is the installed package, also after an installation in place."""
    (tmp_path / "cuda_tma").mkdir()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", "import cuda_tma; print(cuda_tma.check.__name__)"]
    if subprocess.run(
        [*command[:2], "import cuda_tma._errors"], cwd=tmp_path.parent, env=environ, capture_output=True
    ).returncode:
        pytest.skip("cuda_tma is not installed here, but found in the working directory")
    assert subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True).stdout == "check\n"
