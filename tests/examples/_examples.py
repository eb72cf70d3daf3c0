"""The functions and values that the tests of the examples share."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cuda_tma._command import demo

ROOT = Path(__file__).parents[2]
SCRIPTS = [*sorted((ROOT / "examples").glob("[!_]*.py")), Path(demo.__file__)]
# The table contains some instances of the template kernels in the examples.
INSTANCES = {
    "elementwise": ("add<FLOAT32, true>", "add<FLOAT16, false>", "add_tma<FLOAT16>", "add_tma<INT32>"),
    "attention": tuple(f"attention<{d}, {causal}>" for d, causal in
                       ((64, "true"), (96, "false"), (128, "true"), (256, "false"))),
    "attention_sm100": ("attention<false>", "attention<true>"),
    "kv_tiles": ("sweep<FLOAT32, 128, 32>", *(f"stage_tiles<BFLOAT16, {d}, 64, {stages}>" for d, stages in
                 ((64, 2), (96, 3), (128, 4)))),
}  # fmt: skip


def kernels():
    """Return (source, target) of each script with a kernel, without an import of modules that need a GPU."""
    for script in SCRIPTS:
        values = constants(script)
        for target in values.get("TARGETS", ()):
            instances = [f"template __global__ decltype({name}) {name};" for name in INSTANCES.get(script.stem, ())]
            macros = [f"#define {name} {value}" for name, value in demo.DEFINES.items() if script.stem == "demo"]
            yield pytest.param("\n".join([*macros, values["SOURCE"], *instances]), target, id=f"{script.stem}-{target}")


def constants(script: Path) -> dict[str, object]:
    """Return the assignments of literals in a script, including SOURCE and TARGETS."""
    return literals(script.read_text())


def literals(text: str) -> dict[str, object]:
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found
