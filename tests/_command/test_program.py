"""Tests of ``cuda-tma sanitize -- COMMAND``, which checks every launch of a program, even if the program fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

from cuda_tma._command import cli

TESTS = Path(__file__).parents[1]
PYTHON = os.path.realpath(sys.executable)


@pytest.fixture
def program(tmp_path, monkeypatch, capfd):
    """Check a script with the command. Return the exit status, the JSON document, standard output and standard
    error."""
    monkeypatch.chdir(tmp_path)
    packages = tmp_path / "site-packages"
    packages.mkdir()
    copy(TESTS / "support" / "fake_runtime.py", packages)
    paths = [str(packages), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    def program(text, *options, command=None, name="script.py"):
        (tmp_path / name).write_text(f"import os, sys; from fake_runtime import *\n{text}\n", "utf-8")
        command = ["python", name] if command is None else command
        status = cli.main(["sanitize", "--json", "out.json", "--schedules", "2", *options, "--", *command])
        out, err = capfd.readouterr()
        answer = json.loads((tmp_path / "out.json").read_text("utf-8"))
        assert answer["status"] == status
        return status, answer, out, err

    return program


def kinds(answer):
    return [[finding["kind"] for finding in launch["findings"]] for launch in answer["launches"]]


# ---- verdicts ----


def test_a_right_program_has_its_own_status(program):
    status, answer, out, err = program("x = right()\nprint(x.sum())\nsys.exit(7)\n", name="ünï cödé.py")
    assert (status, answer["program_status"], kinds(answer), err) == (7, 7, [[]], "")
    (launch,) = answer["launches"]
    assert (launch["kernel"], launch["grid"], launch["block"]) == ("right", [1, 1, 1], [64, 1, 1])
    assert (launch["cluster"], launch["runtime"], launch["skipped"]) == (None, "fake", None)
    assert (launch["launched_at"]["file"], launch["launched_at"]["line"]) == ("ünï cödé.py", 2)
    first, last = out.splitlines()
    assert first == "64" and last.startswith("cuda-tma: 1 launch judged under 2 schedules, no errors; ")


def test_an_error_ends_with_status_1_and_its_lines(program):
    status, answer, out, _ = program("for _ in range(3): wrong()\nsys.exit(5)")
    assert (status, answer["program_status"], kinds(answer)) == (1, 5, [["race"]] * 3)
    assert out.count("error[race]") == 1 and "the other access:" in out
    assert "  launch: wrong, grid (1, 1, 1), block (64, 1, 1), by script.py:2, and 2 more launches\n" in out
    assert "3 launches judged under 2 schedules, 1 error; " in out
    assert answer["coverage"]["errors"] == 1


def test_a_line_of_ptx_is_shown_without_a_source_line(program):
    *_, out, _ = program("wrong()")
    assert "  --> wrong.ptx:" in out and "ld.shared.u32" in out


def test_a_note_names_the_option_that_gives_ptx_its_source_lines(program):
    text = "import re, fake_runtime\nplain = re.sub(r'(?m)^.*\\.loc.*$', '', ptx_of(WRONG, 'wrong'))\n"
    *_, out, err = program(f"{text}fake_runtime.ptx_of = lambda *_: plain\nwrong()")
    assert "  --> wrong.ptx:" in out
    note = "wrong has no line information: compile with -lineinfo to see the lines of the source"
    assert err == f"cuda-tma: note: {note}\n"


GENERATED = "sys.path.append('{folder}')\nlaunch(WRONG, 'wrong', sources={{'{place}': WRONG}}, generated=['{place}'])"


def test_generated_code_follows_the_line_of_the_program_and_is_kept(program, tmp_path):
    place = str(tmp_path / "wrong.cu")
    text = GENERATED.format(folder=tmp_path, place=place)
    status, answer, out, _ = program(text, "--html", "out.html", "--sarif", "out.sarif")
    assert status == 1
    assert (
        "  --> script.py:3\n    3 | launch(WRONG, 'wrong', " in out
        and "  --> wrong.cu:4:5, which a compiler generated\n    4 |     x[threadIdx.x] = tile[63 - threadIdx.x];\n"
        in out
    )
    assert "wrong.ptx" not in out
    (race,) = answer["launches"][0]["findings"]
    assert (race["source"]["file"], race["source"]["line"]) == ("script.py", 3)
    (inner,) = race["inlined"]
    assert (inner["file"], inner["line"]) == ("out.html.sources/wrong.cu", 4)
    kept = (tmp_path / inner["file"]).read_text()
    assert kept.splitlines()[3] == "    x[threadIdx.x] = tile[63 - threadIdx.x];"
    (result,) = json.loads((tmp_path / "out.sarif").read_text("utf-8"))["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]]
    uris += [
        frame["location"]["physicalLocation"]["artifactLocation"]["uri"] for frame in result["stacks"][0]["frames"]
    ]
    assert uris == ["script.py", "out.html.sources/wrong.cu", "script.py"]
    assert "tile[63 - threadIdx.x]" in (tmp_path / "out.html").read_text("utf-8")


OWN = """import numpy as np
import cuda_tma
SOURCE = r\'\'\'
extern "C" __global__ void shift(int* out) {
    __shared__ int values[64];
    values[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = values[(threadIdx.x + 32) % 64];
}
\'\'\'
kernel = cuda_tma.compile(SOURCE, "shift")
cuda_tma.launch(cuda_tma.Device().create_stream(), cuda_tma.LaunchConfig(1, 64), kernel, np.zeros(64, np.int32))
"""


def test_a_literal_of_the_program_is_shown_there(program, tmp_path, capfd):
    options = ["--record", "launches", "--html", "out.html", "--suppress", "race:script.py:6:this is another line"]
    status, answer, out, _ = program(OWN, *options)
    assert status == 1 and "  --> script.py:8:5\n    8 |     out[threadIdx.x] = values[" in out
    assert "while thread 32 (warp 1) at script.py:7 may still be writing them" in out
    (race,) = answer["launches"][0]["findings"]
    places = [each["source"] for each in (race, *race["related"])]
    assert [(place["file"], place["line"], place["column"]) for place in places] == [
        ("script.py", 8, 5),
        ("script.py", 7, 5),
    ]
    assert (race["inlined"], answer["unused_suppressions"][0]["place"]) == ([], "script.py:6")
    assert "Timeline around the finding" in (tmp_path / "out.html").read_text("utf-8")
    assert cli.main(["sanitize", "launches", "--json", "again.json"]) == 1
    assert json.loads((tmp_path / "again.json").read_text("utf-8"))["launches"][0]["findings"] == [race]
    capfd.readouterr()
    assert program(OWN, "--suppress", "race:script.py:8:planted")[0] == 0


def test_a_hostile_name_of_a_generated_file_stays_in_the_folder(program, tmp_path):
    name = "../../up<b>.cu"
    text = f"launch('#line 1 \"{name}\"\\n' + WRONG, 'wrong', sources={{{name!r}: WRONG}}, generated=[{name!r}])"
    program(text)
    assert [path.name for path in (tmp_path / "out.json.sources").iterdir()] == ["up_b_.cu"]
    assert not (tmp_path.parent.parent / "up<b>.cu").exists()


def test_a_program_without_launches_has_no_verdict(program):
    status, answer, out, _ = program("print('hello')")
    assert (status, answer["program_status"], answer["launches"]) == (3, 0, [])
    assert out.endswith("cuda-tma: 0 launches judged; " + out.rpartition("; ")[2])


def test_an_unknown_instruction_is_skipped(program):
    status, answer, out, _ = program("launch(UNSUPPORTED, 'odd')")
    assert (status, answer["program_status"]) == (3, 1)
    (launch,) = answer["launches"]
    assert launch["skipped"].startswith("UnsupportedInstruction: ") and "nonsense.b32" in launch["skipped"]
    assert "0 launches judged, 1 skipped (UnsupportedInstruction: " in out


@pytest.mark.parametrize(("options", "expected"), [([], 0), (["--require-judged"], 3)])
def test_a_skipped_launch_is_an_error_only_where_all_must_be_checked(program, options, expected):
    status, answer, out, _ = program("right()\ncurrent().skip('other', 'its PTX is not known')", *options)
    assert (status, [launch["skipped"] for launch in answer["launches"]]) == (expected, [None, "its PTX is not known"])
    assert "1 launch judged under 2 schedules, no errors, 1 skipped (its PTX is not known); " in out


def test_a_note_is_shown_once(program):
    _, answer, _, err = program("right()\nfor _ in range(2): current().note('do_bench ran nothing')")
    assert (answer["notes"], err) == (["do_bench ran nothing"], "cuda-tma: note: do_bench ran nothing\n")


def test_suppressions_hold_for_all_launches(program):
    status, answer, out, _ = program("wrong()", "--suppress", "race:*:planted", "--suppress", "deadlock:*:old")
    assert (status, kinds(answer)) == (0, [[]])
    assert "suppressed: race in wrong: planted\n" in out
    assert "unused suppression: deadlock:*:old\n" in out
    assert [each["kind"] for each in answer["unused_suppressions"]] == ["deadlock"]


def test_sarif_has_each_cause_once(program, tmp_path):
    program("right()\nfor _ in range(3): wrong()", "--sarif", "out.sarif")
    (run,) = json.loads((tmp_path / "out.sarif").read_text("utf-8"))["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["occurrenceCount"]) == ("race", 3)
    assert [each["name"] for each in run["logicalLocations"]] == ["right", "wrong"]
    assert result["locations"][0]["logicalLocations"] == [{"index": 1, "fullyQualifiedName": "wrong"}]
    assert run["invocations"][0]["exitCode"] == 1


def test_standard_output_contains_only_the_json(tmp_path, monkeypatch, program, capfd):
    (tmp_path / "script.py").write_text("from fake_runtime import *\nprint('hello')\nright()\n")
    assert cli.main(["sanitize", "--json", "--", "python", "script.py", "--json"]) == 0
    out, err = capfd.readouterr()
    assert (kinds(json.loads(out)), err) == ([[]], "hello\n")


# ---- filters ----


@pytest.mark.parametrize(
    ("options", "judged"),
    [
        (["--kernel", "^wrong$"], [1, 3]),
        (["--kernel", "wrong", "--launch-skip", "1"], [3]),
        (["--launch-skip", "1", "--launch-count", "2"], [1, 2]),
        (["--launch-count", "1"], [0]),
        (["--kernel", "absent"], []),
    ],
)
def test_a_filter_skips_launches_and_keeps_results(program, options, judged):
    text = "x = np.arange(64, dtype=np.int32)\nright(array=x); wrong(array=x); right(array=x); wrong(array=x)\n"
    status, answer, out, _ = program(f"{text}assert x.tolist() == [i + 2 for i in range(64)]", *options)
    found = [number for number, launch in enumerate(answer["launches"]) if launch["skipped"] is None]
    assert found == judged
    assert status == (1 if {1, 3} & {*judged} else 0 if judged else 3)
    assert f", {4 - len(judged)} left out by filters; " in out and answer["coverage"]["left_out"] == 4 - len(judged)


# ---- programs ----


def test_python_is_that_of_the_command_and_a_script_needs_no_prefix(program):
    assert program("assert sys.executable == " + repr(sys.executable) + "\nright()")[0] == 0
    assert program("right()", command=["script.py"])[0] == 0
    assert program("right()", command=["python", "-m", "script"])[0] == 0


def test_a_python_that_ignores_the_environment_gives_no_verdict(program):
    status, answer, _, err = program("", command=["python", "-I", "-c", "print(1)"])
    assert status == 3 and answer["notes"][0].startswith("no Python of the program loaded the adapters")
    assert "Start Python without -I, -E and -S" in err


def test_the_users_sitecustomize_still_runs(program, tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 1\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{os.environ['PYTHONPATH']}")
    assert program("assert mine == 1\nright()")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--", "absent-program"], "the program absent-program does not exist"),
        (["--"], "no program follows --"),
        ([], "name a FILE, or a program after --"),
        (["kernel.cu", "--", "python"], "kernel.cu names a FILE, and a program follows --"),
        (["--grid", "1", "--", "python"], "--grid is only for a single kernel"),
        (["--kernel", "(", "--", "python"], "--kernel ( is not a regular expression: "),
        (["--launch-count", "0", "--", "python"], "--launch-count 1 or more"),
        (["--schedules", "0", "--", "python"], "schedules=0; pass 1 to 1000"),
        (["--json", "absent/out.json", "--", "python"], "--json absent/out.json cannot be written: there is no such"),
        (["kernel.cu"], "the following arguments are required: --kernel, --grid, --block"),
        (["a.py"], "a.py is a program: write cuda-tma sanitize -- python a.py"),
        ([PYTHON], f"{PYTHON} is a program: write cuda-tma sanitize -- {PYTHON}"),
    ],
)
def test_misuse(arguments, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sanitize", *arguments]) == 2
    assert text in capsys.readouterr().err


# ---- recordings ----


def without_times(answer):
    """Return a JSON document without its times and the program's exit status."""
    launches = [{**launch, "seconds": 0} for launch in answer["launches"]]
    return {**answer, "launches": launches, "program_status": 0, "coverage": {**answer["coverage"], "seconds": 0}}


def test_record_and_replay_give_the_report_of_the_run(program, tmp_path, capfd):
    text = "x = np.arange(64, dtype=np.int32)\nright(array=x); wrong(array=x); wrong(array=x)"
    direct = program(text)
    recorded = program(text, "--record", "läunches")
    assert cli.main(["sanitize", "läunches", "--json", "again.json"]) == 1
    again = json.loads((tmp_path / "again.json").read_text("utf-8"))
    assert without_times(direct[1]) == without_times(recorded[1]) == without_times(again)
    shown = [output.rpartition("; ")[0] for output in (direct[2], recorded[2], capfd.readouterr().out)]
    assert shown[0] == shown[1] == shown[2] and "error[race]" in shown[0]


def test_a_replay_elsewhere_quotes_the_recorded_sources(program, tmp_path, monkeypatch, capfd):
    place = str(tmp_path / "wrong.cu")
    (tmp_path / "wrong.cu").write_text("the source of the run\n" * 9)
    program("launch(WRONG, 'wrong')", "--record", "launches")
    (tmp_path / "wrong.cu").unlink()
    program(f"launch(WRONG, 'wrong', sources={{{place!r}: WRONG}}, generated=[{place!r}])", "--record", "generated")
    for name, line in (("launches", "the source of the run"), ("generated", "x[threadIdx.x] = tile[63")):
        assert cli.main(["sanitize", name]) == 1
        assert line in capfd.readouterr().out


# ---- loaded modules ----

RUNTIMES = ("torch", "triton", "tilelang", "cupy", "numba", "pytest")


@pytest.mark.parametrize(
    "text",
    [
        "import cuda_tma",
        "from cuda_tma._command import cli; assert cli.main(['--help']) == 0",
        "from cuda_tma._command import cli; assert cli.main(['sanitize', '--help']) == 0",
        "import pytest_cuda_tma; sys.modules.pop('pytest')",
    ],
)
def test_no_runtime_and_no_adapter_is_loaded(text):
    check = (
        f"loaded = [name for name in sys.modules if name.split('.')[0] in {RUNTIMES} or '_intercept' in name]\n"
        "assert not loaded, loaded\n"
    )
    if "pytest_cuda_tma" in text:
        check = "assert not [name for name in sys.modules if name.startswith(('cuda_tma', 'torch'))]\n"
    command = [sys.executable, "-c", f"import sys\n{text}\n{check}"]
    paths = os.pathsep.join([str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
