"""Tests that the command imports public names of the package, except those in a list that may only become shorter."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = Path(__file__).parent.parent / "cuda_tma" / "_command"

# The command may import these private modules: limits on inputs, files of users, texts in messages, and the sessions
# that run a script on the simulator.
SHARED = {"_budget", "_files", "_given", "_intercept"}
# For each module, the table contains the private names that the command needs, because no public function replaces
# them.
PRIVATE = {
    # The errors and rules of the library also use the names in these modules.
    "_compute_capability": {"parse_compute_capability"},
    "_cuda_errors": {"CUDA_ERRORS", "OBSERVED", "CudaError", "find_error"},
    "_data_type": {"element_bits"},
    "_limits": {"DESCRIPTOR_BYTES", "TMA_SINCE"},
    # The modules create the parts of the page that --html writes.
    "_show": {"pages", "svg", "timeline_svg"},
    # The functions find the user's statements in a chain of inlined calls.
    "simulate._places": {"by_way_of", "statements"},
}


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield each imported name of a command's module, with the module of the package that contains the name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.level == 2 or (node.module or "").startswith("cuda_tma")):
            module = (node.module or "").removeprefix("cuda_tma").removeprefix(".")
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name[len("cuda_tma.") :], "") for alias in node.names if alias.name[:9] == "cuda_tma.")


def private(source: str) -> set[tuple[str, str]]:
    """Return the private modules and names of the package that a source imports, except permitted names."""
    return {
        (module, name)
        for module, name in imports(source)
        if any(part[:1] == "_" and part[:2] != "__" for part in (*module.split("."), name))
        and module.split(".")[0] not in SHARED
    }


LISTED = {(module, name) for module, names in PRIVATE.items() for name in names}
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(COMMAND.glob("*.py"))}


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_of_the_command_imports_public_names(module):
    assert private(SOURCES[module]) - LISTED == set()


def test_the_list_of_private_names_has_no_unused_name():
    assert LISTED - set().union(*map(private, SOURCES.values())) == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from .. import TensorMapOptions, __version__", set()),
        ("from ..simulate import Finding", set()),
        ("from .exit_status import Misuse", set()),
        ("from .._files import write", set()),
        ("from .._options import TensorMapOptions", {("_options", "TensorMapOptions")}),
        ("def f():\n    from ..simulate._machine.deadline import limit", {("simulate._machine.deadline", "limit")}),
        ("from ..simulate import _device", {("simulate", "_device")}),
        ("from cuda_tma._options import Options", {("_options", "Options")}),
        ("import cuda_tma._options", {("_options", "")}),
    ],
)
def test_a_private_import_is_found(source, found):
    assert private(source) == found
