"""Tests of the package's structure in CONTRIBUTING.md. Imports go one way between rooms, and the sizes of files and
functions are limited.

Each ``import`` and ``cimport`` counts, also inside functions and under ``TYPE_CHECKING``. Stubs do not count, because
the types of a descriptor and of its device refer to each other in stubs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest

from .conftest import NEEDS_TORCH

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "cuda_tma"
CODE = (".py", ".pyx", ".pxd")

# The list contains the rooms in order, from the most basic room. A module imports only from its own room and earlier
# rooms. A room is a folder. The modules of the folder cuda_tma are in two rooms: the contract, which users read and
# write, and the doors.
CONTRACT = "contract"
DOORS = "doors"
ROOMS = (
    CONTRACT,
    "_cuda",
    "codec",
    "smem",
    "rules",
    "emulate",
    "_read",
    "_make",
    "_compile",
    "_launch",
    "_watchdog",
    "_show",
    "layouts",
    DOORS,
    "simulate",
    "torch",
    "_intercept",
    "_command",
)
DOOR_MODULES = {
    "",
    "_compile_kernel",
    "_kernel_arg",
    "_tensor_map",
    "_device",
    "graph",
    "kernel_parameters",
    "_params_of",
    "plot",
    "_suggest",
    "testing",
    "_view",
}
# Rooms that create and launch descriptors and kernel arguments use the types in this table.
OWN_TYPES = {"_make": {"_tensor_map"}, "_launch": {"_tensor_map", "_kernel_arg"}}

STATEMENT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>\.*[\w.]*)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|c?import[ \t]+(?P<modules>[\w., ]+))",
    re.MULTILINE,
)
TEXT = re.compile(r'"""(?:.|\n)*?"""')


def modules() -> dict[str, list[Path]]:
    """Return every module of the package by its name below the package, with its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in CODE and "include" not in path.parts:
            parts = path.relative_to(PACKAGE).with_suffix("").parts
            found.setdefault(".".join(takewhile(lambda part: part != "__init__", parts)), []).append(path)
    return found


MODULES = modules()


def imported(name: str, path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports."""
    text = TEXT.sub('""', path.read_text())
    folder = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for found in STATEMENT.finditer(text):
        if found["modules"]:
            for module in found["modules"].split(","):
                parts = module.split(" as ")[0].strip().split(".")
                if parts[0] == "cuda_tma":
                    yield ".".join(parts[1:])
        elif found["source"].startswith(".") or found["source"].split(".")[0] == "cuda_tma":
            start = _absolute(found["source"], folder)
            for each in re.sub(r"#.*|[()\n]", " ", found["names"]).split(","):
                whole = ".".join([*start, *each.split()[:1]])
                yield whole if whole in MODULES else ".".join(start)


def _absolute(source: str, folder: list[str]) -> list[str]:
    """Return the parts of an imported module's name below the package."""
    below = source.lstrip(".")
    dots = len(source) - len(below)
    base = folder[: len(folder) - dots + 1] if dots else []
    return [part for part in (*base, *below.split(".")) if part and (dots or part != "cuda_tma")]


GRAPH = {
    name: {found for path in paths for found in imported(name, path) if found in MODULES} - {name}
    for name, paths in MODULES.items()
}


def room(module: str) -> str:
    if module == "__main__":
        return "_command"
    if module in DOOR_MODULES:
        return DOORS
    first = module.split(".")[0]
    return first if (PACKAGE / first).is_dir() else CONTRACT


def circle(imports: Mapping[str, Collection[str]]) -> str:
    """Return the names along a cycle of imports, or an empty list without a cycle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_no_module_imports_itself_through_others():
    assert circle(GRAPH) == ""


def test_a_circle_is_found():
    assert {*circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}).split(" -> ")} == {"b", "c"}


def test_every_module_has_a_room():
    assert {room(module) for module in MODULES} == set(ROOMS)


def test_rooms_import_only_those_above_them():
    against = [
        f"{module} -> {other}"
        for module, others in GRAPH.items()
        for other in others
        if ROOMS.index(room(other)) > ROOMS.index(room(module)) and other not in OWN_TYPES.get(room(module), ())
    ]
    assert not against, "\n".join(sorted(against))


# ---- the layers of the simulator ----

# The list begins with the layers that import no other layer, and ends with the package and its pytest fixture.
LAYERS = (
    "_errors",
    "_ptx",
    "_places",
    "_findings",
    "_suppression",
    "_report",
    "_config",
    "_tensor_map",
    "_matrix",
    "_pure",
    "_warps",
    "_kernel",
    "_memory",
    "_sync",
    "_tensor_memory",
    "_copies",
    "_instructions",
    "_machine",
    "_sanitize",
    "_trace",
    "_device",
    "_watch",
    "",
    "fixture",
)
MOST_ENTRIES = 25


def layer(module: str) -> str:
    """Return the folder or module below ``simulate`` that contains a module, or ``""`` for the package itself."""
    return module.removeprefix("simulate").lstrip(".").split(".")[0]


def layered() -> list[str]:
    """Return the names of the simulator's modules."""
    return [module for module in MODULES if module.split(".")[0] == "simulate"]


def test_every_module_of_the_simulator_has_a_layer():
    assert {layer(module) for module in layered()} == set(LAYERS)


def test_imports_run_one_way_between_the_layers_of_the_simulator():
    against = [
        f"{module} -> {other}"
        for module in layered()
        for other in GRAPH[module]
        if other.split(".")[0] == "simulate" and LAYERS.index(layer(other)) > LAYERS.index(layer(module))
    ]
    assert not against, "\n".join(sorted(against))


def test_no_folder_of_the_simulator_has_too_many_entries():
    parents = {module: module.rpartition(".")[0] for module in layered()}
    counts = {folder: [*parents.values()].count(folder) for folder in parents.values()}
    assert {folder: count for folder, count in counts.items() if count > MOST_ENTRIES} == {}


def test_the_graph_sees_every_kind_of_import():
    """The graph of imports contains imports at the top of a file, imports inside functions, and ``cimport``
    statements."""
    assert "params" in GRAPH["codec._codec"]
    # The module _read.context contains a cimport, and the line "from ..rules import _refusals".
    assert {"_read.dlpack", "rules._refusals"} <= GRAPH["_read.context"]
    # The module _tensor_map imports _show.html inside a function.
    assert "_show.html" in GRAPH["_tensor_map"]
    # The module simulate._watch imports the package itself inside a function.
    assert "" in GRAPH["simulate._watch"]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("from .rules import _refusals", "rules._refusals"),
        ("from .rules import (  # why\n    check,\n    _refusals,\n)", "rules._refusals"),
        ("def f():\n    from . import _limits as one, launch", "_limits"),
        ("def f():\n    from . import _limits as one, launch", ""),
        ("def f():\n    import cuda_tma", ""),
        ("from cuda_tma import launch", ""),
        ("import os, cuda_tma.rules._find as find", "rules._find"),
        ("from ._launch.call cimport launch_kernel", "_launch.call"),
        ("cimport cuda_tma._launch.call", "_launch.call"),
    ],
)
def test_an_import_is_seen(tmp_path, statement, found):
    path = tmp_path / "params.pyx"
    path.write_text(f'"""import cuda_tma._show"""\n{statement}\n')
    seen = {*imported("params", path)}
    assert found in seen
    assert "_show" not in seen


def test_an_import_for_types_is_seen(tmp_path):
    path = tmp_path / "params.py"
    path.write_text("if TYPE_CHECKING:\n    from ._given import shown\n\nfrom ._limits import MAX_RANK\n")
    assert [*imported("params", path)] == ["_given", "_limits"]


def test_no_import_is_hidden():
    """No import uses a name that is computed at run time, or a line that continues after a backslash.

    Only the package itself computes names, because ``cuda_tma.simulate`` in a user's program is not an import of
    another module.
    """
    hidden = re.compile(r"import_module|__import__|import[ \t]*\\$", re.MULTILINE)
    assert [name for name, paths in MODULES.items() for path in paths if hidden.search(path.read_text())] == [""]


# ---- sizes ----

MOST_LINES, MOST_FUNCTION_LINES = 400, 40
FOLDERS = ("cuda_tma", "benchmarks", "evaluation", "examples", "tools", "tests")
# The files in this table may be longer than MOST_LINES, for the stated reasons.
LONGER = {
    "tests/rules/test_boundaries.py": "a table: every boundary of every rule",
}
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (*CODE, ".pyi")]
DEFINITION = re.compile(
    r"^(?P<margin> *)(?:cp?def(?! class)|def)\b[^=\n]*\(.*\n(?:(?P=margin)(?: +|\)).*\n|\n)*", re.MULTILINE
)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the first line of each function of a file, and its number of lines without its docstring."""
    text = path.read_text()
    if path.suffix == ".pyx":
        for found in DEFINITION.finditer(text):
            yield found[0].splitlines()[0].strip(), len(TEXT.sub("", found[0]).strip().splitlines())
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0] if ast.get_docstring(node) is not None else None
                docstring = first.end_lineno - first.lineno + 1 if first else 0
                yield node.name, node.end_lineno - node.lineno + 1 - docstring


def test_no_file_is_too_long():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert len(lengths) > 200
    assert {name for name, length in lengths.items() if length > MOST_LINES} == set(LONGER)


def test_no_function_is_too_long():
    found = [(path, *function) for path in SOURCES for function in functions(path)]
    assert len(found) > 1000
    assert not [function for function in found if function[2] > MOST_FUNCTION_LINES]


def test_functions_of_cython_are_found(tmp_path):
    source = tmp_path / "module.pyx"
    source.write_text(
        'cdef class A(B):\n    def f(self,\n          x):\n        """Doc.\n\n        More.\n        """\n'
        "        a = 1\n\n        return a\n\n    cdef int b\n\ncdef int g(\n    int a\n) except -1:\n    return 0\n"
    )
    assert [*functions(source)] == [("def f(self,", 6), ("cdef int g(", 4)]


def test_tests_that_need_torch_are_not_collected_without_it():
    """Without torch, pytest skips the tests that need torch, because `make test` runs without torch."""
    tests = ROOT / "tests"
    paths = [path for path in tests.rglob("*.py") if not path.name.startswith("test_")]
    # Other tests run the modules in folders of scripts in separate processes.
    paths = [path for path in paths if "scripts" not in path.parts]
    needing = {str(path.relative_to(tests)) for path in paths if "\nimport torch\n" in path.read_text()}
    assert needing == set(NEEDS_TORCH)


# ---- the tests ----

# The test modules in this table import other test modules, for the stated reasons.
IMPORTERS = {
    "tests/include/test_simulated.py": "it runs the tests of tests/gpu on the simulator",
    "tests/test_contributing.py": "it compares the page with the tables of test_structure",
}
FOLDERS_OF_TESTS = {"benchmarks", "corpus", "data", "docs", "evaluation", "examples", "gpu", "pipelines", "real_bugs",
                    "scripts", "support", "tools"}  # fmt: skip


def test_no_test_module_imports_another():
    """Names that several test modules share are in ``tests/support``, or in a module with a leading underscore."""
    paths = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "scripts" not in path.parts]
    found = {str(path.relative_to(ROOT)) for path in paths if _imports_a_test(path)}
    assert found == set(IMPORTERS)


def _imports_a_test(path: Path) -> bool:
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    named = [name for node in imports for name in (node.module or "", *(each.name for each in node.names))]
    return any(name.rpartition(".")[2].startswith("test_") for name in named)


def test_no_test_imports_a_fixture():
    """No test module imports a fixture, because pytest finds fixtures in conftest.py, and ruff reports the import
    (F811)."""
    paths = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.name != "test_structure.py"]
    assert [str(path.relative_to(ROOT)) for path in paths if "F811" in path.read_text()] == []


def test_the_folders_of_tests_are_those_of_the_package():
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    mirrored = [folder for folder in folders if folder.parts and folder.parts[0] not in FOLDERS_OF_TESTS]
    assert len(mirrored) > 15
    assert [folder for folder in mirrored if not (PACKAGE / folder).is_dir()] == []
