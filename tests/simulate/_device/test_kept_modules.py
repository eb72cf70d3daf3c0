"""Tests of the disk cache of parsed PTX texts. A second process reads a stored text, and a damaged entry counts as
absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._device import device, kept_modules

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 start = 7;
.visible .entry add (.param .u64 .ptr .global .align 4 out)
{
    .reg .b32 %r<3>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    ld.global.u32 %r1, [start];
    add.u32 %r2, %r0, %r1;
    mad.wide.u32 %d1, %r0, 4, %d0;
    st.global.u32 [%d1], %r2;
    ret;
}
.visible .entry other () { ret; }
"""
ROOT = Path(simulate.__file__).parents[2]
LOAD = """
import sys
from cuda_tma import simulate
from cuda_tma.simulate._device import device, kept_modules
kept_modules.LEAST_CHARACTERS = 1
kernel = simulate.Device().load(sys.stdin.read(), "add")
print(kernel.parameters.kernel, len(kernel.program.entry.function.instructions))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept_modules, "LEAST_CHARACTERS", 1)
    return tmp_path


@pytest.fixture
def texts(monkeypatch):
    """Return a list of the PTX texts that the device parses."""
    found = []
    monkeypatch.setattr(device, "read", lambda text, check: found.append(text) or kept_modules.read(text, check))
    return found


def run(name="add"):
    gpu, out = simulate.Device(), np.zeros(4, np.uint32)
    kernel = gpu.load(PTX, name)
    gpu.launch(simulate.Config(1, 4), kernel, *([out] if name == "add" else [])).raise_for_errors()
    return out.tolist()


def test_a_second_load_reads_the_disk(folder, texts):
    assert run() == [7, 8, 9, 10] and run() == [7, 8, 9, 10]
    assert len(texts) == 1 and [path.suffix for path in folder.iterdir()] == [".module"]


def test_each_kernel_has_an_entry(folder, texts):
    run(), run("other"), run("other")
    assert len(texts) == 2 and len([*folder.iterdir()]) == 2


def test_a_short_text_is_not_kept(folder, texts, monkeypatch):
    monkeypatch.setattr(kept_modules, "LEAST_CHARACTERS", len(PTX) + 1)
    run(), run()
    assert len(texts) == 2 and not [*folder.iterdir()]


def test_another_version_has_another_entry(folder, texts, monkeypatch):
    run()
    monkeypatch.setattr(kept_modules, "__version__", "0.0.0")
    run()
    assert len(texts) == 2


def _cut(content, at):
    return content[:at]


def _flipped(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("damage", [_cut, _flipped])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_damaged_entry_is_absent_and_written_again(folder, texts, damage, part):
    run()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole, int(part * len(whole))))
    assert run() == [7, 8, 9, 10]
    assert len(texts) == 2 and path.read_bytes() == whole


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"5", b'{"key": 1}', b"[" * 100_000, b"9" * 5000, b'{"key": null, "module": {}}']
)
def test_an_entry_with_other_content_is_absent(folder, texts, body):
    run()
    (path,) = folder.iterdir()
    path.write_bytes(kept_modules._MAGIC + kept_modules.hashlib.sha256(body).digest() + body)
    assert run() == [7, 8, 9, 10] and len(texts) == 2


def test_an_entry_under_another_name_is_absent(folder, texts):
    run(), run("other")
    first, second = sorted(folder.iterdir())
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    run(), run("other")
    assert len(texts) == 4


def test_a_file_that_others_may_write_is_absent(folder, texts):
    run()
    (path,) = folder.iterdir()
    path.chmod(0o666)
    run()
    assert len(texts) == 2


def test_a_folder_that_cannot_be_written_keeps_nothing(folder, texts, monkeypatch):
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", str(folder / "file" / "below"))
    (folder / "file").write_text("")
    assert run() == [7, 8, 9, 10] and run() == [7, 8, 9, 10] and len(texts) == 2


def test_two_processes_share_an_entry(folder, texts):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, "-c", LOAD]
    both = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [each.communicate(PTX)[0].split() for each in both]
    assert outputs == [["add", "7"], ["add", "7"]] and [each.returncode for each in both] == [0, 0]
    assert len([*folder.iterdir()]) == 1
    assert run() == [7, 8, 9, 10] and not texts
