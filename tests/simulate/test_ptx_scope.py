"""Tests of ``docs/ptx_scope.md``, which lists a form of each PTX instruction that the simulator does not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_tma import simulate

ROOT = Path(__file__).parents[2]
FORMS = [
    line
    for line in (ROOT / "tests" / "data" / "ptx_forms.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
PAGE = (ROOT / "docs" / "ptx_scope.md").read_text()
TABLE = PAGE[PAGE.index("|---|") :]
LISTED = {word for word in re.findall(r"`([^`]+)`", TABLE) if "." in word}
REGISTERS = {"p": "pred", "b": "b8", "h": "b16", "r": "b32", "rd": "b64", "f": "f32", "d": "f64", "q": "b128"}
GPU = simulate.Device("10.0", schedules=1)


def opcode(form: str) -> str:
    return form.split()[0].rstrip(";")


def is_known(form: str) -> bool:
    """Return whether a kernel with this instruction in an unexecuted branch runs."""
    declared = "\n".join(f".reg .{type_} %{name}<16>;" for name, type_ in REGISTERS.items())
    body = f"{declared}\nbra DONE;\n{form}\nDONE: ret;"
    text = f".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry k() {{\n{body}\n}}\n"
    try:
        GPU.launch(simulate.Config(1, 32), GPU.load(text, "k"))
    except simulate.UnsupportedInstruction:
        return False
    return True


@pytest.mark.parametrize("family", sorted({opcode(form).split(".")[0] for form in FORMS}))
def test_the_page_lists_unsupported_instructions(family):
    forms = [form for form in FORMS if opcode(form).split(".")[0] == family]
    assert {opcode(form) for form in forms if not is_known(form)} == {
        name for name in LISTED if name.split(".")[0] == family
    }


def test_the_page_names_forms_of_the_list():
    assert {opcode(form) for form in FORMS} >= LISTED
    assert len(FORMS) > 200
