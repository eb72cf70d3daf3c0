"""A test that the report of a program under Triton's interpreter contains a note, because the interpreter launches no
kernel."""

from __future__ import annotations

import pytest

from tests.support.adapted import ran

SCRIPT = """import torch, triton, triton.language as tl
@triton.jit
def double(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i) * 2)
x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
double[(1,)](x, y, B=64)
assert torch.equal(y, 2 * x)
"""


@pytest.mark.parametrize("is_interpreted", [True, False])
def test_a_note_names_the_interpreter(tmp_path, is_interpreted):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = ran(tmp_path / "script.py", TRITON_INTERPRET=str(int(is_interpreted)))
    assert done.status == 0, done.errors
    assert len(done.launches) == (not is_interpreted)
    assert any(note.startswith("TRITON_INTERPRET is set") for note in done.notes) == is_interpreted
