"""Tests of the report of ``cuda-tma sanitize`` after signals, forks, threads, full disks and many launches."""

from __future__ import annotations

import json
import os
import resource
import signal
import time

import pytest

from cuda_tma._command import cli
from cuda_tma._intercept.launches import read_recording
from tests.support.sanitized_programs import sanitize, started

KILLED = "the process ended during this launch"
IN_A_LAUNCH = "current().device.launch = lambda *given, **keywords: {}\nright()"


@pytest.mark.parametrize(
    ("text", "status", "program_status", "kinds"),
    [
        ("right(); raise ValueError('mine')", 1, 1, [[]]),
        ("wrong(); raise ValueError('mine')", 1, 1, [["race"]]),
        ("right(); os._exit(9)", 9, 9, [[]]),
        ("wrong(); os._exit(0)", 1, 0, [["race"]]),
        ("right(); os.kill(os.getpid(), signal.SIGKILL)", 137, 137, [[]]),
        ("right(); os.kill(os.getpid(), signal.SIGSEGV)", 139, 139, [[]]),
    ],
)
def test_every_end_of_a_program(tmp_path, text, status, program_status, kinds):
    found = sanitize(tmp_path, text, "--record", "launches")
    assert (found.status, found.answer["program_status"], found.kinds) == (status, program_status, kinds)
    assert ("ValueError: mine" in found.err) == ("ValueError" in text)
    assert cli.main(["sanitize", str(tmp_path / "launches")]) == (1 if kinds != [[]] else 0)


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_a_launch_that_the_end_interrupts_is_skipped(tmp_path, end):
    found = sanitize(tmp_path, "wrong()\n" + IN_A_LAUNCH.format(end), "--record", "launches")
    assert (found.status, found.kinds, found.skipped) == (1, [["race"], []], [KILLED])
    found = sanitize(tmp_path, "right()\n" + IN_A_LAUNCH.format("os._exit(0)"), "--require-judged")
    assert (found.status, found.kinds, found.skipped) == (3, [[], []], [KILLED])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_still_reports(tmp_path, number):
    text = "wrong(); open('begun', 'w').close()\nwhile True: time.sleep(0.05)"
    process = started(tmp_path, text, "--record", "launches", start_new_session=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if number == signal.SIGINT:
        # A terminal sends Ctrl-C to the whole process group.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    answer = json.loads((tmp_path / "out.json").read_text())
    assert (process.returncode, answer["status"], answer["program_status"]) == (1, 1, 128 + number)
    assert "error[race]" in out
    assert cli.main(["sanitize", str(tmp_path / "launches")]) == 1


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGSEGV, "SIGSEGV (segmentation fault)"), (signal.SIGABRT, "SIGABRT (aborted)"), (40, "signal 40")],
)
def test_a_note_names_the_signal_that_ended_the_program(tmp_path, number, name):
    found = sanitize(tmp_path, f"os.kill(os.getpid(), {int(number)})")
    assert (found.status, found.answer["program_status"]) == (3, 128 + number)
    assert f"cuda-tma: note: {name} ended the program\n" in found.err
    assert f"{name} ended the program" in found.answer["notes"]


# ---- processes and threads ----


def test_a_fork_continues_in_the_same_session(tmp_path):
    text = "right()\nif os.fork() == 0:\n    wrong(); os._exit(0)\nos.wait(); right()"
    found = sanitize(tmp_path, text)
    assert (found.status, sorted(found.kinds)) == (1, [[], [], ["race"]])


def test_a_fork_that_outlives_the_program_is_checked(tmp_path):
    text = "x = right()\nif os.fork() == 0:\n    time.sleep(0.5); wrong(); right(); os._exit(0)\nos._exit(0)"
    found = sanitize(tmp_path, text)
    assert (found.status, sorted(found.kinds)) == (1, [[], [], ["race"]])


def test_a_program_that_closes_every_file_is_checked(tmp_path):
    text = "right(); os.closerange(3, 100); file = open('mine', 'w'); wrong(); file.write('mine'); file.close()"
    found = sanitize(tmp_path, text)
    assert (found.status, found.kinds) == (1, [[], ["race"]])
    assert (tmp_path / "mine").read_text() == "mine"


def test_spawned_processes_are_checked(tmp_path):
    text = (
        "import subprocess, multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    subprocess.run([sys.executable, '-c', 'from fake_runtime import *; right()'], check=True)\n"
        "    process = multiprocessing.get_context('spawn').Process(target=wrong)\n"
        "    process.start(); process.join()\n"
    )
    found = sanitize(tmp_path, text)
    assert (found.status, sorted(found.kinds), found.answer["program_status"]) == (1, [[], ["race"]], 0)


def test_threads_launch_one_after_another(tmp_path):
    text = (
        "results = []\n"
        "def run():\n    for _ in range(4): results.append(int(right().sum()))\n    wrong()\n"
        "threads = [threading.Thread(target=run) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert results == [64] * 16\n"
    )
    found = sanitize(tmp_path, text)
    assert (found.status, found.answer["program_status"]) == (1, 0)
    assert sorted(found.kinds) == [[]] * 16 + [["race"]] * 4


def test_threads_launch_while_others_fork(tmp_path):
    text = (
        "right()\n"
        "def run():\n    for _ in range(20): right()\n"
        "thread = threading.Thread(target=run); thread.start()\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n        right(); os._exit(0)\n"
        "    os.wait()\n"
        "thread.join()\n"
    )
    found = sanitize(tmp_path, text)
    assert (found.status, found.kinds) == (0, [[]] * 26)


def test_many_launches(tmp_path):
    begun = time.monotonic()
    found = sanitize(tmp_path, "x = np.zeros(64, np.int32)\nfor _ in range(2000): right(array=x)\nassert x[0] == 2000")
    assert (found.status, len(found.answer["launches"]), found.kinds) == (0, 2000, [[]] * 2000)
    assert "2000 launches judged under 2 schedules, no errors; " in found.out
    assert time.monotonic() - begun < 60  # The test takes 4 s on 2 cores that other processes also use.


# ---- a full disk ----


def test_a_launch_whose_report_does_not_fit_is_counted_as_lost(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    found = sanitize(tmp_path, f"right()\n{limit}\nright(); right()")
    assert (found.status, found.kinds, found.answer["coverage"]["lost"]) == (0, [[]], 2)
    assert "1 launch judged under 2 schedules, no errors, 2 lost (File too large); " in found.out
    found = sanitize(tmp_path, f"right()\n{limit}\nright(); wrong()")
    assert (found.status, found.kinds, found.answer["coverage"]["lost"]) == (1, [[]], 2)
    found = sanitize(tmp_path, f"right()\n{limit}\nright()", "--require-judged")
    assert found.status == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("option", ["--json", "--sarif"])
def test_an_unwritable_report_is_misuse_after_the_text(tmp_path, option):
    found = sanitize(tmp_path, "wrong()", option, "/dev/full")
    assert found.status == 2
    assert f"{option} /dev/full cannot be written: No space left on device" in found.err
    assert "error[race]" in found.out


def test_a_launch_that_does_not_fit_is_not_recorded(tmp_path):
    text = "x = np.random.default_rng(0).integers(1 << 30, size=1 << 16, dtype=np.int32)\nlaunch(WRONG, 'wrong', x)"
    found = sanitize(tmp_path, text, "--record", "launches", limits={resource.RLIMIT_FSIZE: 20_000})
    assert (found.status, found.kinds) == (1, [["race"]])
    assert "a launch of wrong is not recorded: File too large" in found.err and "error[race]" in found.out
    assert len(read_recording(tmp_path / "launches")) == 0
    assert not [path.name for path in tmp_path.iterdir() if "partial" in path.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_recording_in_an_unwritable_folder_is_misuse_after_the_text(tmp_path):
    found = sanitize(tmp_path, "wrong()", "--record", "/proc/launches")
    assert found.status == 2 and "--record /proc/launches cannot be written: " in found.err
    assert "error[race]" in found.out
