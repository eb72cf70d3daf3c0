"""A tile that is changed in C++ alone: with the maps of before a launch is refused, in words that name both sides."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from cuda_tma import MapType, TensorMapDataType

from .test_examples import EXAMPLES_WITH_CASES, constants

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

import mutate_tiles  # noqa: E402
from tile_mutations import MUTATIONS, Mutation, NotRefused, differences, refusal  # noqa: E402

EVERY = 5  # on a GPU tools/mutate_tiles.py tries them all


def source_of(example):
    return constants(ROOT / "examples" / f"{example}.py")["SOURCE"]


@pytest.fixture
def hosted(driver, monkeypatch):
    """hosted(example, source) -> the example on the fake driver."""
    pytest.importorskip("torch")
    from .hosted_examples import hosted_example

    return lambda example, source: hosted_example(example, driver, monkeypatch, source)


def test_every_example_has_some_and_each_is_another_kernel():
    of_python = {"gemm_every_shape"}  # its tiles are given by Python
    changed = {"tiled_load", "fp8_tiles", "replace_address", *EXAMPLES_WITH_CASES} - of_python
    assert {m.example for m in MUTATIONS} == changed
    assert min(Counter(m.example for m in MUTATIONS).values()) >= 5
    assert len({(m.example, m.applied(source_of(m.example))) for m in MUTATIONS}) == len(MUTATIONS) >= 100
    with pytest.raises(ValueError, match="the kernel has no 'Tile<INT8'"):
        Mutation("gemm", (("Tile<INT8", "Tile<UINT8"),)).applied(source_of("gemm"))


@pytest.mark.parametrize("mutation", MUTATIONS[::EVERY], ids=str)
def test_maps_of_before_are_refused(mutation, hosted):
    before = source_of(mutation.example)
    module = hosted(mutation.example, mutation.applied(before))
    found = refusal(module, before)
    assert found is None or all(found.values())


@pytest.mark.parametrize("mutation", MUTATIONS[1::EVERY], ids=str)
def test_tensors_give_the_right_result_at_the_new_tile(mutation):
    """On the simulator, every element; from the first launch to the example's own check."""
    pytest.importorskip("torch")
    from .simulated_examples import run_simulated

    run_simulated(mutation.example, mutation.applied(source_of(mutation.example)))


def test_a_wrong_result_is_seen():
    pytest.importorskip("torch")
    from .simulated_examples import run_simulated

    with pytest.raises(AssertionError):
        run_simulated("tiled_load", source_of("tiled_load").replace("tile(i / COLUMNS", "tile(i / COLUMNS / 2"))


def test_the_same_tile_is_no_other(hosted, driver):
    source = source_of("tiled_load")
    assert refusal(hosted("tiled_load", source + "// changed"), source) is None
    assert driver.launches == []


def test_a_wrong_map_that_is_taken_is_seen(hosted):
    source = source_of("tiled_load")
    module = hosted("tiled_load", source.replace("Box<32, 64>", "Box<32, 32>"))
    module.cuda_tma.prepare = lambda *arguments: [*arguments]
    with pytest.raises(NotRefused, match=r"taken, though these differ: .*\(32, 64\), \(32, 32\)"):
        refusal(module, source)


def test_what_a_map_of_one_type_lacks_for_another():
    tile = {"mode": "tiled", "tile_dim": (64, 64), "data_type": TensorMapDataType.FLOAT16, "swizzle": "128B"}
    one = MapType(**tile, l2_promotion="128B")
    assert differences(one, MapType(**tile)) == {}  # a type's default takes any promotion
    assert {*differences(MapType(**tile), one)} == {"l2_promotion"}
    assert differences(one, MapType(**{**tile, "tile_dim": (64, 128)})) == {}  # two of the same boxes
    assert differences(one, MapType(**{**tile, "swizzle": "64B"})).keys() == {"box_dim", "swizzle"}


def test_the_report_counts_and_names_what_is_wrong(capsys):
    some = MUTATIONS[:4]
    results = [{"mutation": str(m), "maps of before": "ok", "tensors": "ok"} for m in some]
    results[1]["maps of before"] = "no other box"
    assert mutate_tiles.report(list(some), results) == 0
    assert capsys.readouterr().out == (
        "4 of 4 mutations: with the maps of before 3 refused, both sides named, 1 with the same box as before; with "
        "tensors 4 right at the new tile\n"
    )
    results[2]["tensors"] = "AssertionError: off by 3"
    assert mutate_tiles.report(list(some), results[1:]) == 1
    out = capsys.readouterr().out
    assert "tensors: AssertionError: off by 3." in out and f"NOT RUN: {some[0]}\n" in out


def test_a_share_says_what_became_of_each(monkeypatch, capsys):
    monkeypatch.setattr(mutate_tiles, "_refused", lambda mutation: "ok")
    monkeypatch.setattr(mutate_tiles, "_computed", lambda mutation: 1 / 0)
    assert mutate_tiles.main(["--only", "gemm", "--share", "1/3"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["mutation"] for line in lines] == [str(m) for m in MUTATIONS if m.example == "gemm"][1::3]
    assert {line["tensors"] for line in lines} == {"ZeroDivisionError: division by zero"}
