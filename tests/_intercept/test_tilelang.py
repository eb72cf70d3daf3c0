"""Tests of findings in TileLang kernels, which contain the program's line and not a line of generated Python."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.adapted import ran

SCRIPT = Path(__file__).parents[1] / "scripts" / "tilelang" / "wrong_overlap.py"


def test_a_first_compilation_names_the_line_of_the_program(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("tilelang")
    script = tmp_path / "script.py"
    shutil.copy(SCRIPT, script)
    done = ran(script, TILELANG_CACHE_DIR=str(tmp_path / "cache"))
    assert done.launches, done.errors
    errors = [found for found in done.launches[0]["findings"] if found["severity"] == "error"]
    named = {file for found in errors for file, _ in found["places"]}
    assert str(script) in named
    assert not any(name.startswith("/tmp/tmp") or name.endswith("kernel.py") for name in named)


def test_an_older_release_chooses_its_backend_in_another_module(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("tilelang")
    from cuda_tma._intercept.tilelang import compiler

    assert compiler._owner_of_backends().__name__ == "BackendModule"
    monkeypatch.setitem(sys.modules, "tilelang.backend.module", None)
    assert compiler._owner_of_backends().__name__ == "tilelang.backend.execution_backend"
