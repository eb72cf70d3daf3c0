"""Tests of the recorder of the driver's encoder calls, on a machine without a GPU."""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from cuda_tma.rules import check

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation" / "recordings"))

import encode_cases  # noqa: E402
import record_encodes  # noqa: E402
from recordings import params_from_recording  # noqa: E402

GOLDEN = ROOT / "tests" / "data" / "encode_sm90.jsonl.gz"


@pytest.fixture(scope="module")
def rows():
    with gzip.open(GOLDEN, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_cases_are_legal_or_break_a_few_rules():
    found = [check(params_from_recording(p), (10, 0)) for p in encode_cases.cases(3000, seed=1)]
    assert 0.3 < sum(not broken for broken in found) / len(found) < 0.7
    assert len({broken[0].rule for broken in found if len(broken) == 1}) >= 24


def test_cases_are_those_of_the_seed():
    first, again, other = ([json.dumps(p) for p in encode_cases.cases(50, seed)] for seed in (1, 1, 2))
    assert first == again and set(first).isdisjoint(other)


def test_arguments_are_those_of_the_drivers_signature():
    for p in encode_cases.cases(200, seed=3):
        assert set(record_encodes._SIGNATURES[p["kind"]]) == set(p) - {"kind"}


def test_the_recordings_agree(rows):
    verdicts = Counter(record_encodes.verdict(row) for row in rows)
    assert set(verdicts) == {"agrees", "refused by both"} and verdicts["agrees"] > 1000


def test_differences_are_reported(rows, tmp_path, capsys):
    row = next(row for row in rows if row["result"] == 0 and row["params"]["kind"] == "tiled")
    refused = row | {"result": 1, "descriptor": None}
    flipped = row | {"descriptor": "ff" + row["descriptor"][2:]}
    large = row | {"allocation_class": {"requested": 2, "effective": 2}}
    illegal = row | {"params": row["params"] | {"l2_promotion": 4}}
    assert [record_encodes.verdict(r) for r in (refused, flipped, large, illegal)] == [
        "DIFFERS: refused by the driver alone",
        "DIFFERS in bytes",
        "DIFFERS in bytes",
        "DIFFERS: refused by the rule l2_promotion alone",
    ]
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in (row, flipped)).encode()))
    assert record_encodes.compare(path) == 1
    out = capsys.readouterr().out
    assert "1  tiled: agrees" in out and json.dumps(flipped) in out
