"""Tests of mangled names that expand exponentially. The length of the mangled name bounds the time of the parser."""

from __future__ import annotations

import time

import pytest

from cuda_tma import simulate
from cuda_tma._budget import DEMANGLED_CHARACTERS, MANGLED_CHARACTERS
from cuda_tma._command import cli
from cuda_tma._compile import plain_names
from cuda_tma._compile.parameter_types import types_of_name
from cuda_tma._compile.plain_names import demangled, plain_name
from cuda_tma.simulate._warps.program import _plain_name

BOMBS = {
    "a pack of two packs, forty times": f"_ZN1aIJiiEE{'1bIJT_T_EE' * 40}Ev",
    "two packs in a function's parameters": f"_ZN1aIJiiEE{'1bIJT_T_EE' * 14}EvT_{'S2_T_' * 4000}",
    "an expansion of a pack of two packs": f"_ZN1aIJiiEE{'1bIJDpT_DpT_EE' * 40}Ev",
    "scopes that are read twice": f"_Z1aI{'Xsr1aI' * 200}",
    "a name of many parts": f"_ZN{'1a' * 200_000}Ev",
    "types in types": f"_Z1a{'P' * 300_000}i",
    "packs in packs": f"_Z1aI{'J' * 300_000}",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_growing_name_is_refused(bomb):
    name = BOMBS[bomb]
    begun = time.process_time()
    assert plain_name(name).removesuffix("<...>") in (
        name,
        "a",
        "a" + "::b" * 14,
        # The preceding line contains the part of the name before the exponential growth.
    )
    assert types_of_name(name) is None
    assert time.process_time() - begun < 4


def test_the_limit_is_one_of_characters():
    """In a mangled name, each `1bIT_T_E` doubles the length of a type. The parser accepts a few doublings, and limits
    the length of a type."""
    for count in range(1, 60):
        name = f"_Z1kI{'1bI' * count}iiE" + "E" * count + "Ev" + "S_S0_" * count
        found = demangled(name)
        assert found is None or len(found) <= DEMANGLED_CHARACTERS
    # In the mangled name, S_ refers to an earlier type, but the name has no earlier type.
    assert demangled("_Z1kfS_") is None
    assert demangled("_Z1k" + "Pf" * 100) is not None
    assert demangled("_Z1k" + "Pf" * MANGLED_CHARACTERS) is None


@pytest.mark.parametrize("name", ["_Z1kP1AS0_S_", "_Z1kI1A1BEvT_T0_S1_"])
def test_the_bound_is_above_the_written_size(name):
    assert len(demangled(name)) <= plain_names._longest(name)


def test_without_a_demangler_names_stay_mangled(monkeypatch):
    monkeypatch.setattr(plain_names, "_demangler", lambda: None)
    demangled.cache_clear()
    assert demangled("_Z4axpyfPf") is types_of_name("_Z4axpyfPf") is None
    assert plain_name("_Z4axpyfPf") == "_Z4axpyfPf"
    assert plain_name("axpy") == "axpy"
    demangled.cache_clear()


def test_a_kernel_of_such_a_name_runs(tmp_path, capsys):
    name = BOMBS["a pack of two packs, forty times"]
    text = f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry {name}()\n{{\nret;\n}}\n"
    (tmp_path / "bomb.ptx").write_text(text)
    launch = ["--grid", "1", "--block", "32"]
    assert cli.main(["sanitize", str(tmp_path / "bomb.ptx"), "--kernel", name, *launch]) == 0
    assert capsys.readouterr().out.startswith("no errors; 4 schedules")
    assert cli.main(["sanitize", str(tmp_path / "bomb.ptx"), "--kernel", "b", *launch]) == 2
    assert "the PTX has no kernel b" in capsys.readouterr().err


def test_a_signature_of_two_arguments_is_invalid():
    name = "_ZN8cuda_tma9signatureIiiEE"
    assert types_of_name(name) is None
    text = f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry {name}()\n{{\nret;\n}}\n"
    assert simulate.Device().load(text, name).name == name


def test_a_box_of_types_is_not_a_map():
    """The nested types share their parts, so that the full text of the type would contain 2**60 names."""
    shared = "1aIii" + "E" + "".join(f"1aIS{'' if n == 0 else '0123456789'[n - 1]}_S_E" for n in range(3))
    name = f"_Z1kN8cuda_tma8TiledMapINS_4TileILi3EJNS_3BoxIJ{shared}EEEELi0EEELi0ELi0EEE"
    assert types_of_name(name) in (None, (None,))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("_ZZ6kernelE4full", "full"),
        ("_ZN5space4fullE", "full"),
        ("_ZN8cuda_tma8constantILx400EEE", "_ZN8cuda_tma8constantILx400EEE"),
        (f"_Z{'1a' * 100_000}", "a"),
        (f"_Z{'N' * 200_000}{'E' * 200_000}", f"_Z{'N' * 200_000}{'E' * 200_000}"),
        (f"_ZZ{'9' * 100_000}a", f"_ZZ{'9' * 100_000}a"),
    ],
)
def test_the_plain_name_of_a_variable(name, plain):
    begun = time.process_time()
    assert _plain_name(name) == plain
    assert time.process_time() - begun < 2
