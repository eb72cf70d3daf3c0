"""The command line is a user of the package: it imports public names, except for a list that may only get shorter."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = Path(__file__).parent.parent / "cuda_tma" / "_command"

# Modules behind the command that are no interface: input limits, files of users, texts in messages, and the sessions
# that run a script on the simulator.
SHARED = {"_budget", "_files", "_given", "_intercept"}
# Private names that the command still needs: no user wants them, and no public function gives them.
PRIVATE = {
    "CUDA_ERRORS",
    "CudaError",
    "DESCRIPTOR_BYTES",
    "LaunchesError",
    "MemoryTooLarge",
    "NAMES",
    "OBSERVED",
    "Place",
    "RecordedLaunch",
    "Recording",
    "TMA_SINCE",
    "by_way_of",
    "captured",
    "element_bits",
    "fields",
    "find_error",
    "is_recording",
    "pages",
    "parse_compute_capability",
    "plain_name",
    "read_recording",
    "replayed",
    "seconds_of",
    "statements",
    "svg",
    "timeline_svg",
    "words_of",
    "write_recording",
}


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Each module of the package that a module of the command imports from, and the name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.level == 2 or (node.module or "").startswith("cuda_tma")):
            module = (node.module or "").removeprefix("cuda_tma").removeprefix(".")
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name[len("cuda_tma.") :], "") for alias in node.names if alias.name[:9] == "cuda_tma.")


def private(source: str) -> list[str]:
    """What it imports of private modules and names."""
    return [
        f"{module}.{name}"
        for module, name in imports(source)
        if any(part[:1] == "_" and part[:2] != "__" for part in (*module.split("."), name))
        and module.split(".")[0] not in SHARED
        and name not in PRIVATE
    ]


@pytest.mark.parametrize("path", sorted(COMMAND.glob("*.py")), ids=lambda path: path.stem)
def test_a_module_of_the_command_imports_public_names(path):
    assert private(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from .. import TensorMapOptions, __version__", []),
        ("from ..simulate import Finding", []),
        ("from .exit_status import Misuse", []),
        ("from .._files import write", []),
        ("from .._options import TensorMapOptions", ["_options.TensorMapOptions"]),
        ("def f():\n    from ..simulate._machine.deadline import limit", ["simulate._machine.deadline.limit"]),
        ("from ..simulate import _device", ["simulate._device"]),
        ("from cuda_tma._options import Options", ["_options.Options"]),
        ("import cuda_tma._options", ["_options."]),
    ],
)
def test_a_private_import_is_found(source, found):
    assert private(source) == found
