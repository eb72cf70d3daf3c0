"""Tests of the tool that compares the sanitizer with compute-sanitizer, on a machine without a GPU."""

import base64
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "evaluation" / "compute_sanitizer"))

import compare_sanitizers  # noqa: E402
import compared_kernels  # noqa: E402
import compared_page  # noqa: E402

CASES = compared_kernels.cases()
MISALIGNED = """========= COMPUTE-SANITIZER
========= Misaligned shared or local address
=========     at kernel+0x1a0 in kernel.cu:19
=========     by thread (0,0,0) in block (0,0,0)
========= Target application returned an error
========= ERROR SUMMARY: 34 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at 0x7f00 in kernel and Read access at 0x30 in kernel [12 hazards]
=========
{"ended": "ends", "values": ""}
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def ended(values):
    packed = base64.b64encode(zlib.compress(np.array(values, np.int32).tobytes())).decode()
    return "launches\n" + json.dumps({"ended": "ends", "values": packed}) + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("launches\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", "0"),
        (MISALIGNED, "34 (Misaligned shared or local address)"),
        (RACE, "1 (Race reported between Write access and Read access)"),
        ("========= Barrier error detected. Missing wait.\n========= ERROR SUMMARY: 1 error\n",
         "1 (Barrier error detected. Missing wait)"),
        ("========= COMPUTE-SANITIZER\nlaunches\n", "0, hangs"),
        ("========= Barrier error detected. Missing wait.\nlaunches\n",
         "1 (Barrier error detected. Missing wait), hangs"),
        ("========= Error: Device not supported.\n", "not supported here"),
        ("Traceback (most recent call last):\nImportError: cuda\n", "no summary: does not start"),
        (ended([1]), "no summary: ends"),
    ],
)  # fmt: skip
def test_a_cell(text, expected):
    assert compared_page.cell({"text": text}) == expected


def test_a_cell_without_a_run():
    assert compared_page.cell(None) == "not run"


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (ended([1, 2, 3]), "ends, values right"),
        (ended([1, 7, 7]), "ends, **2 values wrong**"),
        ('launches\n{"ended": "hangs", "values": ""}\n', "hangs"),
        ("launches\ncuda.core.CUDAError: CUDA_ERROR_LAUNCH_FAILED: it failed\n", "CUDA_ERROR_LAUNCH_FAILED"),
        ("launches\n", "hangs"),
        ("ImportError", "does not start"),
    ],
)
def test_end_of_the_gpu(wrong, expected):
    (case,) = [case for case in CASES if case.name == "V4"]
    records = {"V4|wrong|": {"text": wrong}, "V4|mended|": {"text": ended([1, 2, 3])}}
    assert f" | {expected} | not run | not run | not run |\n" in compared_page.page(records, [case])


def test_every_bug_is_found_at_its_place():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) and {"V0 (nothing wrong)", "V10", "deepep_642_polled_then_loaded"} <= {*names}
    (case,) = [case for case in CASES if case.name == "V3"]
    finding = compared_kernels.simulated(case).errors[0]
    assert (finding.kind, finding.source[-1].line) == (case.kind, case.culprit)


# ---- processes ----

TALKS = "import json, sys; given = json.load(sys.stdin); print('launches'); print('patience', given['patience_s'])"
STUCK = "print('launches', flush=True); import time; time.sleep(600)"


def jobs(*names):
    return [job for job in compare_sanitizers.jobs_of(CASES) if job.case.name in names and job.tool in ("", "memcheck")]


def test_a_hanging_process_is_ended_and_the_rest_is_kept():
    ports = set()

    def command(job, port):
        ports.add(port)
        return [sys.executable, "-c", STUCK if job.case.name == "V1" else TALKS]

    found = compare_sanitizers.run_jobs(jobs("V1", "V2"), 3, 60, command, patience_s=1.5)
    records = {record["key"]: record for record in found}
    assert len(records) == 8
    assert {key for key, record in records.items() if record["was_ended"]} == {
        f"V1|{which}|{tool}" for which in ("wrong", "mended") for tool in ("", "memcheck")
    }
    assert records["V1|wrong|"]["text"] == "launches\n"
    assert records["V2|wrong|"]["text"] == "launches\npatience 6\n"
    assert records["V2|wrong|memcheck"]["text"] == "launches\npatience 12\n"
    assert ports <= {49152, 49184, 49216}


def test_after_the_limit_nothing_is_started():
    assert compare_sanitizers.run_jobs(jobs("V2"), 3, -1, lambda job, port: ["no-such-command"]) == []


def test_a_page_of_partial_results_lists_missing_ones():
    text = compared_page.page({"V2|wrong|": {"text": "launches\n"}}, CASES)
    assert "| `V2` | race | " in text and "not run" in text and "no GPU yet" in text


def test_a_process_that_runs_a_kernel_ends_without_a_gpu(monkeypatch):
    """Without a GPU, the process that runs a kernel ends and prints the reason."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (record,) = compare_sanitizers.run_jobs(jobs("V2")[:1], 1, 60)
    assert compared_page.ending(record)["ended"] == "does not start" and "Traceback" in record["text"]


# ---- records ----

RECORDS = compare_sanitizers.records_in(compare_sanitizers.RECORDED)
COMPARED = [case for case in CASES if f"{case.name}|simulator" in RECORDS]


def test_the_page_matches_the_recording():
    assert len(COMPARED) >= 38
    remedy = "run: python evaluation/compute_sanitizer/compare_sanitizers.py --page"
    assert compare_sanitizers.PAGE.read_text("utf-8") == compared_page.page(RECORDS, COMPARED), remedy


def test_the_simulator_agrees_with_the_page():
    """Two reported lines count as equal if they belong to the same statement, because compilers assign different lines
    to a statement."""
    for case, now in zip(COMPARED, compare_sanitizers.judged(COMPARED), strict=True):
        then = RECORDS[now["key"]]["said"]
        remedy = f"{case.name}: run python evaluation/compute_sanitizer/compare_sanitizers.py --page"
        assert now["said"].rpartition(" ")[0] == then.rpartition(" ")[0], remedy
        assert abs(int(now["said"].rpartition(" ")[2] or 0) - int(then.rpartition(" ")[2] or 0)) <= 1, case.name


def test_a_run_is_written_without_the_hosts_frames(tmp_path, monkeypatch):
    printed = "print('launches\\n=====  Host Frame: x\\nends')"
    monkeypatch.setattr(compare_sanitizers, "_command", lambda job, port: [sys.executable, "-c", printed])
    monkeypatch.setattr(compare_sanitizers.shutil, "which", lambda name: name)
    monkeypatch.setattr(
        compare_sanitizers, "_machine", lambda: {"key": "machine", "gpu": "a GPU", "compute_sanitizer": "1.0"}
    )
    results = tmp_path / "results.jsonl.gz"
    compare_sanitizers.main(["--only", "V2", "--jobs", "1", "--results", str(results)])
    written = compare_sanitizers.records_in(results)
    assert written["V2|wrong|"]["text"] == "launches\nends\n" and written["V2|simulator"]["kind"] == "race"
    assert results.with_suffix(".md").read_text().startswith("# Comparison with compute-sanitizer\n")
