"""Tests of the text, the documents and the exit statuses of ``cuda-tma sanitize``."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._command import cli, console
from cuda_tma.simulate._ptx import Place

SOURCE = """#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __device__ int printf(const char*, ...);
namespace ns {
__global__ void kernel(const __grid_constant__ TensorMap source, int* out, bool waits) {
    __shared__ __align__(128) int tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); }
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(1024);
        load(tile, source, full, Coordinates{0});
        printf("loads");
    }
    if (waits) full.wait(0);
\t/* häß 日本 */ out[threadIdx.x] = tile[threadIdx.x];
    full.wait(0);
}
}
"""
READ, LOAD = 16, 12
ARGUMENTS = ["--grid", "1", "--block", "256", "--arg", "int32[256]@256", "--arg", "int32[256]", "--arg"]
WRONG, RIGHT = [*ARGUMENTS, "0"], [*ARGUMENTS, "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of the kernel, which is the working directory."""
    folder = tmp_path / "ünï dir"
    folder.mkdir()
    (folder / "kernel.cu").write_text(SOURCE, "utf-8", newline="\r\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def sanitize(folder, capsys):
    def sanitize(*arguments, file="kernel.cu", kernel="ns::kernel"):
        status = cli.main(["sanitize", file, "--kernel", kernel, *map(str, arguments)])
        return status, *capsys.readouterr()

    return sanitize


@pytest.fixture
def ptx(folder):
    """Return a PTX file with line information, and a PTX file without line information."""
    text = simulate.Device().compile(folder / "kernel.cu", "ns::kernel").ptx
    (folder / "lines.ptx").write_text(text, "utf-8")
    kept = [line for line in text.splitlines() if not line.strip().startswith((".loc", ".file"))]
    (folder / "plain.ptx").write_text("\r\n".join(kept), newline="")
    return kept


# ---- text for users ----


def test_a_fault_is_shown_with_both_lines_rule_and_remedy(sanitize):
    status, out, err = sanitize(*WRONG)
    assert (status, err) == (1, "")
    assert out.startswith(
        "loads\n"
        "error[race]: thread 0 (warp 0) and 255 other threads read 1024 bytes at `tile` while the TMA copy at "
        "kernel.cu:12 may still be writing them: nothing orders the two\n"
        "  --> kernel.cu:16:21\n"
        "   16 |     /* häß 日本 */ out[threadIdx.x] = tile[threadIdx.x];\n"
        "      |                  ^\n"
        "  the other access:\n"
        "  --> kernel.cu:12:9, by way of tma.cuh:"
    )
    assert "   12 |         load(tile, source, full, Coordinates{0});\n      |         ^\n" in out
    assert '  rule: PTX ISA, "Causality Order"' in out and "  remedy: wait for the phase of the copy's mbarrier" in out
    assert "  where: block (0, 0, 0), thread 0\n" in out
    assert out.splitlines()[-1].startswith("1 error, 1 piece of advice; 4 schedules, ")


def test_functions_of_the_user_are_shown_with_their_callers(sanitize, folder):
    called = "__device__ int consume(const int* tile) {\n    return tile[threadIdx.x];\n}\n"
    text = SOURCE.replace("namespace ns {", f"namespace ns {{\n{called}").replace(
        "= tile[threadIdx.x]", "= consume(tile)"
    )
    (folder / "kernel.cu").write_text(text, "utf-8")
    _, out, _ = sanitize(*WRONG, "--sarif", "out.sarif", "--suppress", "uninitialized-read:ns::consume:planted")
    assert (
        "\n  --> kernel.cu:6:5\n    6 |     return tile[threadIdx.x];\n      |     ^\n"
        "  --> kernel.cu:20:21, which calls that\n   20 |     /* häß 日本 */ out[threadIdx.x] = consume(tile);\n"
    ) in out
    race, _ = json.loads(Path("out.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert race["locations"][0]["physicalLocation"]["region"]["startLine"] == 6
    frames = [frame["location"]["physicalLocation"]["region"]["startLine"] for frame in race["stacks"][0]["frames"]]
    assert frames == [6, 20]


def test_a_right_kernel_prints_one_line(sanitize):
    status, out, _ = sanitize(*RIGHT, "--strict", "--schedules", "2")
    assert status == 0 and out.startswith("loads\nno errors; 2 schedules, ")


def test_a_finding_without_a_remedy_of_its_own_has_its_kinds(sanitize):
    status, out, _ = sanitize(*RIGHT[:3], "256", *RIGHT[4:6], "--arg", "int32[255]", "--arg", 1)
    assert status == 1 and "error[out-of-bounds]: a write of 4 bytes" in out
    assert f"  remedy: {simulate._findings._REMEDIES['out-of-bounds']}\n" in out
    assert simulate._findings._REMEDIES.keys() == simulate.KINDS.keys()


def test_colors_are_for_terminals(sanitize, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(console.sys, "stdout", None)
        # The command raises no error when no process reads its output.
        console.print_styled([("", "bold")])
    _, plain, _ = sanitize(*WRONG)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, coloured, _ = sanitize(*WRONG)
    assert "\x1b[1;31merror[race]\x1b[0m" in coloured and "\x1b" not in plain
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert sanitize(*WRONG)[1] == plain


# ---- PTX ----


@pytest.mark.parametrize("kernel", ["ns::kernel", "_ZN2ns6kernelEN8cuda_tma9TensorMapEPib"])
def test_ptx_without_line_information_is_shown_itself(sanitize, ptx, kernel):
    status, out, _ = sanitize(*WRONG, "--sarif", "out.sarif", file="plain.ptx", kernel=kernel)
    assert status == 1 and "\n  the other access:\n  --> plain.ptx:" in out
    first, second, *_ = (int(line.split(":")[1]) for line in out.splitlines() if line.startswith("  --> plain.ptx:"))
    assert ptx[first - 1].strip() == f"ld.shared{ptx[first - 1].partition('ld.shared')[2]}"
    assert ptx[second - 1].strip().startswith("cp.async.bulk.tensor.1d")
    (result, _) = json.loads(Path("out.sarif").read_text("utf-8"))["runs"][0]["results"]
    where = result["locations"][0]["physicalLocation"]
    assert where == {"artifactLocation": {"uri": "plain.ptx", "uriBaseId": "SRCROOT"}, "region": {"startLine": first}}
    assert result["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": second}


def test_ptx_with_line_information_shows_the_source(sanitize, ptx):
    _, out, _ = sanitize(*WRONG, file="lines.ptx")
    assert "\n  --> kernel.cu:16:21\n   16 |     /* häß 日本 */ out" in out


def test_a_kernel_absent_from_the_ptx_is_named(sanitize, ptx):
    status, _, err = sanitize(*WRONG, file="plain.ptx", kernel="kernal")
    assert status == 2
    assert "the PTX has no kernel kernal; it has _ZN2ns6kernelEN8cuda_tma9TensorMapEPib (ns::kernel)" in err


# ---- documents for programs ----


def test_json_has_everything(sanitize):
    status, out, _ = sanitize(*WRONG, "--json", "--seed", "7", "--suppress", "deadlock:*:planted")
    answer = json.loads(out)
    (launch,) = answer["launches"]
    assert (status, answer["status"], answer["program_status"], launch["output"]) == (1, 1, None, "loads")
    assert (launch["kernel"], launch["runtime"]) == ("_ZN2ns6kernelEN8cuda_tma9TensorMapEPib", "cuda-tma")
    assert (launch["grid"], launch["block"], launch["cluster"], launch["skipped"]) == (
        [1, 1, 1],
        [256, 1, 1],
        None,
        None,
    )
    assert launch["schedules"] == [["early", 0], ["late", 0], ["random", 7], ["random", 8]]
    race, read = launch["findings"]
    assert (race["kind"], race["severity"], read["kind"]) == ("race", "error", "uninitialized-read")
    assert (race["source"]["file"], race["source"]["line"], race["inlined"]) == ("kernel.cu", READ, [])
    other, *_ = race["related"]
    assert (other["message"], other["source"]["line"]) == ("the other access", LOAD)
    assert other["inlined"][-1]["file"].endswith(".cuh")
    assert race["rule"] in race["message"] and race["remedy"] in race["message"]
    assert answer["unused_suppressions"] == [{"kind": "deadlock", "place": "*", "reason": "planted"}]


def test_json_goes_to_a_file_in_addition_to_the_text(sanitize, folder):
    status, out, _ = sanitize(*WRONG, "--json", "out.json")
    answer = json.loads((folder / "out.json").read_text("utf-8"))
    assert (status, answer["status"], len(answer["launches"][0]["findings"])) == (1, 1, 2)
    assert "error[race]" in out


def test_sarif(sanitize, folder):
    status, _, _ = sanitize(*WRONG, "--sarif", "out.sarif")
    log = json.loads((folder / "out.sarif").read_text("utf-8"))
    assert (status, log["version"], log["$schema"].rpartition("/")[2]) == (1, "2.1.0", "sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": f"{folder.as_uri()}/"}}
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*simulate.KINDS]
    assert rules[0]["help"]["text"].startswith("Two unordered accesses to the same bytes")
    race, read = run["results"]
    assert (race["ruleId"], race["level"], read["ruleId"], read["level"]) == (
        "race",
        "error",
        "uninitialized-read",
        "note",
    )
    assert rules[read["ruleIndex"]]["id"] == "uninitialized-read"
    (where,), (other, *_) = race["locations"], race["relatedLocations"]
    text = "\t/* häß 日本 */ out[threadIdx.x] = tile[threadIdx.x];"
    assert where["physicalLocation"] == {
        "artifactLocation": {"uri": "kernel.cu", "uriBaseId": "SRCROOT"},
        "region": {"startLine": READ, "startColumn": text.index("out") + 1, "snippet": {"text": text}},
    }
    assert other["physicalLocation"]["region"]["startLine"] == LOAD and other["id"] == 1
    assert where["logicalLocations"] == [{"index": 0, "fullyQualifiedName": "ns::kernel"}]
    assert run["logicalLocations"][0]["decoratedName"] == "_ZN2ns6kernelEN8cuda_tma9TensorMapEPib"
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_of_another_folder_has_absolute_uris(sanitize, folder, monkeypatch):
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    sanitize(*WRONG, "--sarif", "out.sarif", file="../kernel.cu")
    (race, _) = json.loads((folder / "below" / "out.sarif").read_text("utf-8"))["runs"][0]["results"]
    artifact = race["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (folder / "kernel.cu").as_uri()} and "%C3%BCn%C3%AF%20dir" in artifact["uri"]


# ---- suppressions ----


def test_suppressions_come_from_the_line_and_from_a_file(sanitize, folder):
    (folder / "known").write_text("# looked at\n\nuninitialized-read:ns::kernel:it is TMA's: a known gap\n", "utf-8")
    given = ["--suppress", f"race:kernel.cu:{READ}:planted", "--suppressions", "known", "--suppress", "race:a.cu:1:old"]
    status, out, _ = sanitize(*WRONG, *given, "--sarif", "out.sarif")
    assert status == 0
    assert out.splitlines()[1:-1] == [
        "suppressed: race at kernel.cu:16: planted",
        "suppressed: uninitialized-read at kernel.cu:16: it is TMA's: a known gap",
        "unused suppression: race:a.cu:1:old",
    ]
    assert out.splitlines()[-1].startswith("no errors, 2 suppressed; 4 schedules")
    (run,) = json.loads((folder / "out.sarif").read_text("utf-8"))["runs"]
    assert [result["suppressions"] for result in run["results"]] == [
        [{"kind": "external", "justification": "planted"}],
        [{"kind": "external", "justification": "it is TMA's: a known gap"}],
    ]
    (note,) = run["invocations"][0]["toolConfigurationNotifications"]
    assert note["message"]["text"] == "unused suppression: race:a.cu:1:old"


@pytest.mark.parametrize(
    ("written", "place", "reason"),
    [
        ("race:gemm.cu:41:why: because", "gemm.cu:41", "why: because"),
        ("race: gemm.cu:4* : why", "gemm.cu:4*", "why"),
        ("race:src/gemm.cu:41:why", "src/gemm.cu:41", "why"),
        ("race:ns::produce:why", "ns::produce", "why"),
        ("race:ns::*:12 values may be lost", "ns::*", "12 values may be lost"),
        ("race:PTX line 87:why", "PTX line 87", "why"),
        (r"race:C:\a\f.cu:41:why: because", r"C:\a\f.cu:41", "why: because"),
        ("race:C:/a/f.cu:4*:why", "C:/a/f.cu:4*", "why"),
        ("race:C:41:why", "C:41", "why"),
    ],
)
def test_a_suppression_is_read(written, place, reason):
    assert simulate.Suppression.parse(written) == simulate.Suppression("race", place, reason)


@pytest.mark.parametrize(
    "text",
    [
        "race",
        "race:x",
        "race::why",
        "race:gemm.cu:41:",
        "race:gemm.cu:41",
        "race:gemm.cu:4*",
        "",
        ":::",
        "race:C:/f.cu:41",
    ],
)
def test_invalid_suppression_is_refused(text):
    with pytest.raises(ValueError, match=r"does not have the form kind:place:reason|has no reason"):
        simulate.Suppression.parse(text)


@pytest.mark.parametrize("begin", ["race:", "race", "race:a:", "race:a:1"])
@pytest.mark.parametrize("part", [" ", "1", ":", "a:", ":1", "\n", "::"])
def test_a_suppression_is_read_in_linear_time(begin, part):
    begun = time.process_time()
    with contextlib.suppress(ValueError):
        simulate.Suppression.parse(begin + part * 30_000)
    # An earlier parser needed 17 seconds for a line with 3,000 blanks.
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("place", [r"C:\a\f.cu:41", "C:/a/f.cu:41", r"a\f.cu:4?", "f.cu:41"])
def test_a_place_of_windows_covers_its_findings(place):
    finding = simulate.Finding("race", "error", "m", (Place(r"C:\a\f.cu", 41, 1),))
    assert simulate.Suppression("race", place, "why").covers(finding)
    assert not simulate.Suppression("race", r"D:\a\f.cu:41", "why").covers(finding)


@pytest.mark.parametrize("name", ["kernel.cu", "./kernel.cu", "link.cu", "known"])
def test_a_log_replaces_no_input(sanitize, folder, name):
    (folder / "known").write_text("race:*:why\n")
    (folder / "link.cu").symlink_to(folder / "kernel.cu")
    before = (folder / "kernel.cu").read_bytes()
    status, _, err = sanitize(*WRONG, "--suppressions", "known", "--sarif", name)
    assert status == 2 and "an input of this command; name another file" in err
    assert (folder / "kernel.cu").read_bytes() == before
    assert (folder / "known").read_text() == "race:*:why\n"


# ---- the end of the command ----


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--suppress", "rase:*:why"], "kind='rase'; pass one of race, "),
        (["--suppress", "race:*"], "does not have the form kind:place:reason"),
        (["--suppressions", "absent"], "--suppressions absent cannot be read: No such file"),
        (["--suppressions", "known"], "known:2: kind='rase'; pass one of"),
        (["--schedules", "0"], "schedules=0; pass 1 to 1000"),
        (["--max-steps", "0"], "max_steps=0; pass 1 or more"),
        (["--seed", "-1"], "seed=-1; pass 0 or more"),
        (["--sarif", "absent/out.sarif"], "--sarif absent/out.sarif cannot be written: there is no such folder"),
        (["--sarif", "."], "--sarif . cannot be written: Is a directory"),
        (["--arg", "int32[256]@512"], "the map of --arg 3"),
        (["--arg", "int32[256]@256,swizzle=9B"], "the map of --arg 3"),
        (["--arg", "int32[256]@256,colour=red"], "option of a map; the options are element_strides, "),
        (["--arg", "object[3]"], "object is a dtype whose elements are not numbers; pass a dtype such as float32"),
        (["--arg", "int8[9999999x9999999999]"], "int8[9999999x9999999999] "),
        (["--arg", "hex:123"], "or bytes (hex:0100)"),
        (["--arg", "known.npy"], "known.npy is not a .npy file of numbers"),
        (["--arg", "absent.npy"], "absent.npy cannot be read: No such file"),
    ],
)
def test_misuse(sanitize, folder, arguments, text):
    for name in ("known", "known.npy"):
        (folder / name).write_text("race:*:why\nrase:*:why\n")
    status, _, err = sanitize(*WRONG, *arguments)
    assert status == 2 and text in err


def test_an_array_for_a_plain_map_lacks_a_box(sanitize):
    status, _, err = sanitize(*WRONG[:4], "--arg", "int32[8x8]", *WRONG[6:])
    assert status == 2 and "--arg 0 is for a tensor map: add its box, as ...@32x32,swizzle=128B" in err


def test_structs_are_passed_as_bytes(sanitize, folder):
    text = 'struct Both { int a, b; }; extern "C" __global__ void k(Both both, int* p) { *p = both.a / both.b; }'
    (folder / "kernel.cu").write_text(text)
    given = ["--grid", 1, "--block", 1, "--arg", "hex:0600000002000000", "--arg", "int32[1]"]
    assert cli.main(["run", "kernel.cu", "--kernel", "k", *map(str, given), "--output", "."]) == 0
    assert np.load("arg1.npy").tolist() == [3]


def test_an_unknown_instruction_gives_no_verdict(sanitize, folder):
    text = SOURCE.replace("full.wait(0);\n}", 'asm volatile("nonsense.b32 0;");\n}').replace(
        "__global__", "EXTRA __global__"
    )
    (folder / "kernel.cu").write_text(text, "utf-8")
    status, out, err = sanitize(*WRONG, "-D", "EXTRA=", "--json", "--sarif", "out.sarif")
    assert status == 3 and "the simulator does not know nonsense.b32" in err
    assert json.loads(out) == {"error": err.removeprefix("cuda-tma: ").strip()}
    (run,) = json.loads((folder / "out.sarif").read_text("utf-8"))["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"], run["results"]) == (False, 3, [])
    assert "nonsense.b32" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_a_kernel_that_does_not_end(sanitize, folder):
    (folder / "kernel.cu").write_text('extern "C" __global__ void spin(volatile int* p) { while (!*p); }')
    status, out, _ = sanitize("--grid", 1, "--block", 1, "--arg", "int32[1]", "--max-steps", 1000, kernel="spin")
    assert status == 1 and "error[no-progress]: the kernel has not ended after " in out


def test_exit_statuses_are_in_the_help(capsys):
    assert cli.main(["sanitize", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "exit status: 2 if the command line is wrong" in text and "3 if no launch could be judged" in text
    assert "cuda-tma sanitize [options] -- COMMAND..." in text
