"""Tests of the tool that generates mutants of kernels, records their results, and runs some mutants again."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

# Some mutants change example kernels, which need torch.
pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation" / "kernel_mutants"))

import mutate_kernels  # noqa: E402
from kernel_mutators import EXPECTED, mutants_of  # noqa: E402
from kernel_outcomes import FOUND, MISSED, Culprit, far, judged, share  # noqa: E402

from cuda_tma import simulate  # noqa: E402

KERNEL = """
__device__ void copy(Barrier& full) {
    // full.wait(1); is a comment
    for (int i = 0; i < 4; ++i) {
        full.wait(i % 2);
        out[i] = tile[i];
    }
    if (leader) wait_group_read<1>();
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address()) : "memory");
}
"""
ROWS = mutate_kernels.read(mutate_kernels.KEPT)
REASONS = mutate_kernels.reasons()


def test_mutants_are_small_changes_of_statements():
    made = {(mutant.mutator, mutant.line, mutant.what) for mutant in mutants_of(KERNEL)}
    asm = KERNEL.split("\n")[8].strip()
    assert made == {
        ("change_iterations", 4, "i < 4 -> i < 4 - 1"),
        ("change_iterations", 4, "i < 4 -> i < 4 + 1"),
        ("change_iterations", 4, "i = 0 -> i = 1"),
        ("drop_wait", 5, "full.wait(i % 2); -> ;"),
        ("move_wait", 5, "full.wait(i % 2); out[i] = tile[i]; -> out[i] = tile[i]; full.wait(i % 2);"),
        ("change_parity", 5, "i % 2 -> (i % 2) ^ 1"),
        ("drop_wait_group", 8, "wait_group_read<1>(); -> ;"),
        ("change_depth", 8, "<1> -> <(1) + 1>"),
        ("drop_arrive", 9, f"{asm} -> ;"),
        ("move_arrive", 8, f"if (leader) wait_group_read<1>(); {asm} -> {asm} if (leader) wait_group_read<1>();"),
        ("change_scope", 9, ".cluster -> .cta"),
    }


def test_a_mutant_keeps_the_lines_after_it():
    for mutant in mutants_of(KERNEL):
        assert mutant.apply(KERNEL).count("\n") == KERNEL.count("\n")


def test_nearness_of_places():
    inlined = [("x/cuda_tma/pipeline.cuh", 60), ("kernel.cu", 41)]
    culprit = Culprit.of("pipeline.cuh", (60, 60), [inlined])
    # A finding in the line before the call is near the mutated line.
    assert culprit.is_near([("kernel.cu", 40)])
    assert not culprit.is_near([("kernel.cu", 45)])
    assert culprit.is_near([("x/cuda_tma/pipeline.cuh", 57), ("kernel.cu", 90)])
    assert not culprit.is_near([("x/cuda_tma/pipeline.cuh", 70), ("kernel.cu", 41)])


def test_right_kinds_are_kinds():
    assert set().union(*EXPECTED.values()) <= simulate.KINDS.keys()
    assert {row["kind"] for row in ROWS if row["outcome"] == FOUND} <= simulate.KINDS.keys()
    assert all(row["kind"] in EXPECTED[row["mutator"]] for row in ROWS if row["outcome"] == FOUND)


def test_most_are_found_and_the_rest_is_explained():
    batches = [[row for row in ROWS if row["batch"] == number] for number in (1, 2, 3, 4)]
    assert len(ROWS) >= 600 and min(map(len, batches)) >= 100 and 3 * len(batches[3]) >= len(ROWS)
    shares = [found / asked for found, asked in (share(batch, REASONS) for batch in batches)]
    assert min(shares[:2]) >= 0.97 and min(shares[2:]) >= 0.9
    found, asked = share([row | {"outcome": row["drawn"]} for row in batches[3]], REASONS)
    assert found >= 0.93 * asked
    found, asked = share(ROWS, REASONS)
    assert found >= 0.95 * asked and found + far(ROWS, REASONS) >= 0.97 * asked
    unexplained = [row["id"] for row in ROWS if judged(row, REASONS) == MISSED and row["id"] not in REASONS]
    assert not unexplained
    assert REASONS.keys() <= {row["id"] for row in ROWS}


def test_the_readme_has_the_shares(capsys):
    page = " ".join((ROOT / "evaluation" / "README.md").read_text().split())
    found, asked = share(ROWS, REASONS)
    near_or_far = (found + far(ROWS, REASONS)) / asked
    near = f"For {found} of {asked} mutants ({found / asked:.1%}), the sanitizer has a finding near the change"
    assert f"{near}, and for {near_or_far:.1%} at any line." in page
    mutate_kernels.main(["summary", str(mutate_kernels.KEPT)])
    *of_mutators, total, _ = capsys.readouterr().out.splitlines()
    assert total.startswith(f"{len(ROWS)} mutants: ") and len(of_mutators) == 2 * len({row["mutator"] for row in ROWS})


# QUICK contains the fastest kernels, and CHOSEN contains one of their mutants for each mutator.
QUICK = ("examples/tiled_load", "examples/transpose", "tests/gpu/pipeline", "examples/kv_tiles")
CHOSEN = {row["mutator"]: row for row in ROWS if row["outcome"] == FOUND and row["subject"] in QUICK}


def test_some_are_found_again(capsys):
    """The command `again` lists the mutants whose source lines no longer exist, and runs only the other mutants."""
    mutate_kernels.main(["again", str(mutate_kernels.KEPT), "--only", *(row["id"] for row in CHOSEN.values())])
    said = capsys.readouterr().out
    counts = re.search(r"^(\d+) mutants: (\d+) found$", said, re.M)
    assert counts is not None and counts[1] == counts[2] and int(counts[1]) >= 15, said
