"""Tests of ``--baseline``: the command reports only the findings that an earlier report does not contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuda_tma._command import cli

KERNEL = """extern "C" __global__ void shift(int* out) {{
    __shared__ int row[64];
    row[threadIdx.x] = threadIdx.x;{barrier}
    out[threadIdx.x] = row[63 - threadIdx.x];{more}
}}
"""
KNOWN = KERNEL.format(barrier="", more="")
WITH_A_NEW_ONE = "\n\n" + KERNEL.format(barrier="", more="\n    out[threadIdx.x + 1] = 7;")
FIXED = KERNEL.format(barrier=" __syncthreads();", more="")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def sanitize(capsys):
    def sanitize(text, *options, expected):
        Path("shift.cu").write_text(text, "utf-8")
        command = ["sanitize", "shift.cu", "--kernel", "shift", "--grid", "1", "--block", "64", "--arg", "int32[65]"]
        assert cli.main([*command, "--schedules", "1", *options]) == expected
        return capsys.readouterr().out

    return sanitize


def kinds_and_lines(path):
    (launch,) = json.loads(Path(path).read_text("utf-8"))["launches"]
    return [(each["kind"], each["source"]["line"]) for each in launch["findings"]]


@pytest.mark.parametrize("form", ["--sarif", "--json"])
def test_a_known_finding_is_omitted_and_counted(sanitize, form):
    sanitize(KNOWN, form, "base", expected=1)
    out = sanitize(KNOWN, "--baseline", "base", "--json", "out", expected=0)
    assert kinds_and_lines("out") == []
    assert json.loads(Path("out").read_text("utf-8"))["coverage"]["known"] == 1
    assert out.startswith("no errors, 1 known from the baseline; 1 schedule, ")


def test_only_the_new_finding_is_reported_after_lines_have_moved(sanitize):
    sanitize(KNOWN, "--sarif", "base", expected=1)
    sanitize(WITH_A_NEW_ONE, "--json", "whole", expected=1)
    sanitize(WITH_A_NEW_ONE, "--baseline", "base", "--json", "new", "--sarif", "new.sarif", expected=1)
    known = [("race", 6)]
    assert sorted(kinds_and_lines("new") + known) == sorted(kinds_and_lines("whole"))
    assert [line for _, line in kinds_and_lines("new")] == [7] * len(kinds_and_lines("new"))
    (run,) = json.loads(Path("new.sarif").read_text("utf-8"))["runs"]
    assert len(run["results"]) == len(kinds_and_lines("new")) >= 1


def test_an_edit_of_the_line_makes_a_finding_new(sanitize):
    sanitize(KNOWN, "--sarif", "base", expected=1)
    sanitize(KNOWN.replace("63 -", "31 ^"), "--baseline", "base", expected=1)


def test_a_fixed_kernel_needs_no_baseline(sanitize):
    sanitize(FIXED, "--sarif", "base", expected=0)
    sanitize(KNOWN, "--baseline", "base", expected=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--baseline base does not contain a SARIF report; write one with cuda-tma sanitize --sarif FILE"),
        ("[]", "--baseline base does not contain a SARIF report"),
        ("{}", "--baseline base does not contain a SARIF report"),
        ('{"runs": [{"results": [{}]}]}', "--baseline base does not contain a SARIF report"),
        (
            '{"runs": [{"results": [{"partialFingerprints": {"cudaTma/v1": 7}}]}]}',
            "--baseline base does not contain a SARIF report",
        ),
        ("[" * 100_000, "--baseline base does not contain a SARIF report"),
        (None, "--baseline base cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_not_a_report_is_refused(sanitize, capsys, text, message):
    if text is not None:
        Path("base").write_text(text, "utf-8")
    Path("shift.cu").write_text(KNOWN, "utf-8")
    assert cli.main(["sanitize", "shift.cu", "--kernel", "shift", "--baseline", "base"]) == 2
    assert message in capsys.readouterr().err


def test_the_baseline_is_not_overwritten(sanitize, capsys):
    sanitize(KNOWN, "--sarif", "base", expected=1)
    before = Path("base").read_bytes()
    assert cli.main(["sanitize", "shift.cu", "--baseline", "base", "--sarif", "base"]) == 2
    assert "--sarif base is base, an input of this command; name another file" in capsys.readouterr().err
    assert Path("base").read_bytes() == before
