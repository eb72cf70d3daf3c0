"""Tests of the time limit on a launch and on the load of its PTX. The report contains an error and the earlier
findings."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._command import cli
from cuda_tma.simulate import Config
from cuda_tma.simulate._machine import deadline
from cuda_tma.simulate._machine.deadline import Deadline

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
COUNTS = (
    f"{HEAD}.visible .entry f(.param .u64 p)\n{{\n.reg .b64 %rd<4>;\nmov.u64 %rd1, 0;\nL:\n"
    "add.u64 %rd1, %rd1, 1;\nbra L;\n}\n"
)
LIMIT_SECONDS = 0.3
# The limit includes a margin for busy machines.
MOST_SECONDS = 10.0
SENTENCE = "the launch reached the time limit of 0.3 s after "


def within_limit(run):
    begun = time.monotonic()
    found = run()
    assert time.monotonic() - begun < MOST_SECONDS
    return found


def launched(text, *arguments, threads=32, **settings):
    gpu = simulate.Device(time_limit=LIMIT_SECONDS, **settings)
    kernel = gpu.load(text, "f")
    return within_limit(lambda: gpu.launch(Config(1, threads), kernel, *arguments, max_steps=1 << 40))


@pytest.mark.parametrize("settings", [{}, {"sanitize": False}, {"schedules": 4}])
@pytest.mark.parametrize("threads", [1, 1024])
def test_a_loop_that_counts(settings, threads):
    report = launched(COUNTS, 0, threads=threads, **settings)
    assert report.findings == () and report.unfinished.startswith(SENTENCE)
    assert "at PTX line " in report.unfinished and "the rest of the launch is not checked" in report.unfinished
    assert str(report).endswith(report.unfinished)
    with pytest.raises(simulate.TimeLimitReached, match="reached the time limit of 0.3 s"):
        report.raise_for_errors()


def test_a_long_text_without_a_loop():
    """In the test, the running threads execute a long text without a branch."""
    text = COUNTS.replace("L:\n", "L:\n" + "add.u64 %rd1, %rd1, 1;\n" * 20_000)
    gpu = simulate.Device(time_limit=LIMIT_SECONDS, multiprocessor_count=32)
    kernel = loaded_without_limit(gpu, text)
    report = within_limit(lambda: gpu.launch(Config(64, 1024), kernel, 0))
    assert report.unfinished.startswith(SENTENCE)


def loaded_without_limit(gpu, text):
    gpu.time_limit, limit = None, gpu.time_limit
    kernel = gpu.load(text, "f")
    gpu.time_limit = limit
    return kernel


PRINTS = """.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 8 .b8 s[60008] = {{{bytes}}};
.visible .entry f()
{{
.reg .b64 %rd<4>;
mov.u64 %rd1, s;
cvta.global.u64 %rd2, %rd1;
{{ .param .b64 p0; st.param.b64 [p0], %rd2; .param .b64 p1; st.param.b64 [p1], %rd2; .param .b32 q;
call (q), vprintf, (p0, p1); }}
ret;
}}
"""


def test_one_instruction():
    """The kernel of the test has one slow printf, in which each of 1,024 threads formats 30,000 percent signs."""
    data = b"%%" * 30_000
    gpu = simulate.Device(time_limit=LIMIT_SECONDS)
    kernel = loaded_without_limit(gpu, HEAD + PRINTS.format(bytes=",".join(map(str, data))))
    report = within_limit(lambda: gpu.launch(Config(1, 1024), kernel))
    assert report.unfinished.startswith(SENTENCE)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "// x\n;" * 2_000_000,
        f"{HEAD}.global .b8 x[] = {{{'{1},' * 1_000_000}}};",
        COUNTS.replace("L:\n", "L:\n" + "add.u64 %rd1, %rd1, 1;\n" * 100_000),
        HEAD + ".global .b8 x;\n" * 300_000,
    ],
    ids=["marks", "an initializer", "statements", "variables"],
)
def test_the_loading_of_a_text(text):
    gpu = simulate.Device(time_limit=LIMIT_SECONDS)

    def load():
        with pytest.raises(
            simulate.TimeLimitReached, match=r"^the loading of the PTX reached the time limit of 0\.3 s$"
        ):
            gpu.load(text, "f")

    within_limit(load)


RACES = """.visible .entry f(.param .u64 p)
{
.reg .b64 %rd<4>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [p];
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %ctaid.x;
st.global.u32 [%rd1], %r1;
L:
add.u64 %rd2, %rd2, 1;
bra L;
}
"""


def test_findings_before_the_limit_are_reported():
    gpu, out = simulate.Device(time_limit=LIMIT_SECONDS), np.zeros(4, np.int32)
    report = within_limit(lambda: gpu.launch(Config(2, 1), gpu.load(HEAD + RACES, "f"), out, max_steps=1 << 40))
    assert [finding.kind for finding in report.errors] == ["race"] and report.unfinished
    with pytest.raises(simulate.SimulationError):
        report.raise_for_errors()


def test_later_schedules_are_omitted_and_memory_is_that_of_the_first():
    gpu, out = simulate.Device(time_limit=LIMIT_SECONDS, schedules=8), np.zeros(4, np.int32)
    report = gpu.launch(Config(1, 1), gpu.load(HEAD + RACES.replace("%r1;\nL", "7;\nL"), "f"), out, max_steps=1 << 40)
    assert report.unfinished and report.schedules == (("early", 0),)
    assert out[0] == 7


def test_launches_of_a_sequence_end_together():
    gpu = simulate.Device(time_limit=LIMIT_SECONDS)
    loops, ends = gpu.load(COUNTS, "f"), gpu.load(HEAD + ".visible .entry f()\n{\nret;\n}\n", "f")
    early = Config(1, 1, programmatic_stream_serialization=True)
    row = [(Config(1, 1), ends), (Config(1, 1), loops, 0), (early, ends), (Config(1, 1), ends)]
    reports = within_limit(lambda: gpu.launch_all(row, max_steps=1 << 40))
    assert [bool(report.unfinished) for report in reports] == [False, True]


def test_a_launch_that_ends_in_time_is_finished():
    gpu = simulate.Device(time_limit=60)
    assert gpu.launch(Config(1, 1), gpu.load(HEAD + ".visible .entry f()\n{\nret;\n}\n", "f")).unfinished == ""


def test_a_device_continues_after_the_limit():
    gpu, out = simulate.Device(time_limit=LIMIT_SECONDS), np.zeros(4, np.int32)
    assert gpu.launch(Config(1, 1), gpu.load(COUNTS, "f"), 0, max_steps=1 << 40).unfinished
    kernel = gpu.load(HEAD + RACES.replace("bra L;", "ret;"), "f")
    assert gpu.launch(Config(1, 1), kernel, out).findings == ()


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e9, "1", True])
def test_invalid_limit(limit):
    with pytest.raises((TypeError, ValueError), match="^time_limit="):
        simulate.Device(time_limit=limit)


def test_an_interrupt_repeats_to_the_end_of_its_block():
    called = threading.Event()
    with Deadline(0.01).interrupting(called.set):
        assert called.wait(MOST_SECONDS)
        called.clear()
        assert called.wait(MOST_SECONDS)
    with Deadline(None).interrupting(called.clear):
        assert called.is_set()


# ---- the command ----


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        (tmp_path / "k.ptx").write_text(text)
        launch = ["k.ptx", "--kernel", "f", "--block", "1", "--time-limit", "0.3", "--max-steps", "999999999"]
        status = within_limit(lambda: cli.main([arguments[0], *launch, *arguments[1:]]))
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", ["run", "sanitize"])
def test_the_exit_status_is_3(command, name):
    status, out, err = command(COUNTS, name, "--grid", "1", "--arg", "0")
    assert status == 3 and "no errors" in out
    assert err.startswith(f"cuda-tma: {SENTENCE}") and err.count("\n") == 1


@pytest.mark.parametrize("name", ["run", "sanitize"])
def test_the_exit_status_is_3_while_the_text_is_loaded(command, name):
    status, out, err = command(HEAD + "// x\n;" * 2_000_000, name, "--grid", "1")
    assert (status, out, err) == (3, "", "cuda-tma: the loading of the PTX reached the time limit of 0.3 s\n")


def test_an_error_before_the_limit_has_exit_status_1(command):
    status, out, err = command(HEAD + RACES, "sanitize", "--grid", "2", "--arg", "int32[4]", "--sarif", "log")
    assert status == 1 and "error[race]" in out and err.startswith(f"cuda-tma: {SENTENCE}")
    (invocation,) = json.loads(Path("log").read_text())["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert SENTENCE in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_json_has_the_sentence(command):
    status, out, _ = command(COUNTS, "sanitize", "--grid", "1", "--arg", "0", "--json")
    document = json.loads(out)
    assert status == document["status"] == 3
    assert document["launches"][0]["unfinished"].startswith(SENTENCE)


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "x", "1e99", "9" * 5000])
def test_an_invalid_time_limit(capsys, limit):
    launch = ["k.ptx", "--kernel", "f", "--grid", "1", "--block", "1", f"--time-limit={limit}"]
    assert cli.main(["sanitize", *launch]) == 2
    assert "is not a time; write seconds as 60 or 0.5" in capsys.readouterr().err


def test_the_help_states_the_default(capsys):
    cli.main(["sanitize", "--help"])
    assert "(default: 60)" in " ".join(capsys.readouterr().out.split())


def test_watched_work_is_removed_under_the_lock(monkeypatch):
    """The lock is necessary, because the thread of the time limit reads the watched work concurrently."""
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    watch, used = deadline._Watch(), []

    class Watched(dict):
        def __setitem__(self, key, value):
            used.append(watch._lock.locked())
            super().__setitem__(key, value)

        def __delitem__(self, key):
            used.append(watch._lock.locked())
            super().__delitem__(key)

        def values(self):
            used.append(watch._lock.locked())
            # The negative idle time ends the watching thread at its next turn.
            monkeypatch.setattr(deadline, "_IDLE_SECONDS", -1.0)
            return [*super().values()]

    watch._watched = Watched()
    monkeypatch.setattr(deadline, "_TICK_SECONDS", 0.0)
    first, second = (watch.add(deadline.NEVER, print) for _ in range(2))
    watch.remove(first)
    assert [*watch._watched] == [second]
    watch.remove(second)
    watch._run()
    assert used == [True] * 5 and watch._thread is None
