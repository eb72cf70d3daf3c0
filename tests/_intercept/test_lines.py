"""Tests of the parser of source lines in Triton's PTX. The parser does not need Triton."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "cuda_tma" / "_intercept" / "triton" / "lines.py"

PTX = """
	.loc	1 11 13
	// begin inline asm
	.loc	1 11 13
	mov.u32 %r1, 0x0;
	.loc	1 12 13
	ld.global.b32 { %r1 }, [ %rd1 + 0 ];
	// end inline asm
	.loc	1 12 24
	add.f32 	%r3, %r1, %r1;
"""


def test_an_inline_assembly_has_one_line():
    spec = importlib.util.spec_from_file_location("lines", PATH)
    lines = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lines)
    found = lines.with_lines_of_calls(PTX)
    assert [line.split()[2] for line in found.splitlines() if ".loc" in line] == ["11", "12"]
    assert len(found.splitlines()) == len(PTX.splitlines())
    assert "ld.global.b32 { %r1 }" in found
