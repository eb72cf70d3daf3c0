"""Tests of recorded launches. A replay gives the report of the original launch, and the reader refuses a hostile
file."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import random
import resource
import stat
import struct
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._command import cli
from cuda_tma._intercept import launches
from cuda_tma._intercept.launches import LaunchesError, captured, read_recording, replayed, write_recording
from cuda_tma._intercept.launches.values import launch_of, values_of_launch

SOURCE = """#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
__device__ int calls = 5;
extern "C" __device__ int printf(const char*, ...);
extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, int* out, const int* in, int n) {
    __shared__ __align__(128) int tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); calls += n; printf("calls %d", calls); }
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(1024);
        load(tile, source, full, Coordinates{0});
    }
    out[threadIdx.x] = tile[threadIdx.x] + in[threadIdx.x];
    full.wait(0);
}
"""


@pytest.fixture(scope="module")
def launched():
    """Return the recording and the report of a wrong launch with a tensor map, a read-only array, a variable and a
    freed array."""
    gpu = simulate.Device(schedules=3)
    kernel = gpu.compile(SOURCE, "kernel")
    freed, values = np.zeros(16, np.int32), np.arange(256, dtype=np.int32)
    gpu.address(freed)
    del freed
    given = np.arange(256, dtype=np.int32)
    given.flags.writeable = False
    out, config = np.zeros(256, np.int32), simulate.Config(1, 256)
    arguments = [gpu.create_tensor_map(values, box_dim=(256,)), out, given, 2]
    value = captured(gpu, config, kernel, arguments, kernel="the kernel", runtime="fake", sources={"a.cu": "é\n"})
    return value, gpu.launch(config, kernel, *arguments)


def test_a_launch_is_a_value(launched):
    value, _ = launched
    assert (value.kernel, value.entry, value.runtime, value.tensor_maps) == ("the kernel", "kernel", "fake", (0,))
    assert [len(argument) for argument in value.arguments] == [128, 8, 8, 4]
    assert value.arguments[3] == struct.pack("<i", 2)
    assert [each.is_read_only for each in value.memory].count(True) == 1
    assert (value.compute_capability, value.config.block) == ((9, 0), (256, 1, 1))
    assert (value.source, value.parameter_names) == (SOURCE, ("source", "out", "in", "n"))
    address = value.variables["calls"]
    (variable,) = [each for each in value.memory if each.address == address]
    assert variable.data == struct.pack("<i", 5)


def test_a_replay_has_the_same_report_each_time(launched):
    value, report = launched
    assert report.errors and report.output == "calls 7"
    for _ in range(2):
        assert replayed(value, schedules=3) == report
    traced = replayed(value, schedules=3, trace=True)
    assert traced.timeline().kernel == "kernel" and replace(traced, traced=None) == report


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_a_replay_takes_arguments_of_every_type(linkage):
    """A recording contains the bytes of each argument, and a replay accepts them for a parameter of any type."""
    source = f"{linkage}__global__ void put(float* out, float x, bool b, long n, double y) {{ *out = x + b + n + y; }}"
    gpu, out, config = simulate.Device(), np.zeros(1, np.float32), simulate.Config(1, 1)
    kernel = gpu.compile(source, "put")
    value = captured(gpu, config, kernel, [out, 0.5, True, 2, 4.0], kernel="put", runtime="fake", sources={})
    assert [len(argument) for argument in value.arguments] == [8, 4, 1, 8, 8]
    assert replayed(value) == gpu.launch(config, kernel, out, 0.5, True, 2, 4.0)
    assert out[0] == 7.5


def test_values_are_the_launch(launched):
    value, _ = launched
    values, blobs = values_of_launch(value)
    assert launch_of(json.loads(json.dumps(values)), blobs) == value


def test_a_file_has_each_content_once(launched, tmp_path):
    value, _ = launched
    path = tmp_path / "ünï"
    assert write_recording(path, [value, value], {"schedules": 3}) == 2
    recording = read_recording(path)
    assert (len(recording), recording.settings, [*recording]) == (2, {"schedules": 3}, [value, value])
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    contents = {each.data for each in value.memory} | {value.ptx, value.source, "é\n"}
    assert len(names) == len({*names}) == len(contents) + 1
    other = tmp_path / "other"
    write_recording(other, [value, value], {"schedules": 3})
    assert other.read_bytes() == path.read_bytes()
    assert path.read_bytes().startswith(b"cuda-tma launches 1 sha256:")


def test_a_file_that_cannot_be_written_leaves_the_old_one(launched, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def failing():
        yield launched[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_recording(path, failing(), {})
    assert (path.read_text(), [*tmp_path.iterdir()]) == ("old", [path])


# ---- hostile files ----


def test_a_pipe_stays_a_pipe_and_takes_the_file(launched, tmp_path):
    """If the writer renamed a new file to the given path, it would also replace a device such as /dev/null."""
    value, _ = launched
    os.mkfifo(tmp_path / "pipe")
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
        assert write_recording(tmp_path / "pipe", [value], {"schedules": 3, "seed": 0, "strict": False}) == 1
        (tmp_path / "file").write_bytes(reader.read())
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert len(read_recording(tmp_path / "file")) == 1
    # No process has opened the pipe to read.
    with pytest.raises(OSError, match="No such device or address"):
        write_recording(tmp_path / "pipe", [value], {})


def test_a_link_stays_a_link(launched, tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_recording(tmp_path / "link", [launched[0]], {"schedules": 3, "seed": 0, "strict": False})
    assert (tmp_path / "link").is_symlink()
    assert len(read_recording(tmp_path / "file")) == 1


@pytest.fixture(scope="module")
def written(launched, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "launches"
    write_recording(path, [launched[0]], {"schedules": 3})
    return path.read_bytes()


def refusal(path, data):
    """Return the error with which the reader refuses a file, or an empty string if the file is accepted."""
    path.write_bytes(data)
    try:
        recording = read_recording(path)
        for launch in recording:
            assert launch.entry
    except LaunchesError as error:
        assert len(str(error).splitlines()) == 1
        return str(error)
    return ""


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.9, 0.999])
def test_a_cut_file_is_refused(written, tmp_path, share):
    text = refusal(tmp_path / "cut", written[: int(share * len(written))])
    assert "is damaged" in text or "is not a file of recorded launches" in text


def test_a_flip_anywhere_is_refused(written, tmp_path):
    rng = random.Random(1)
    for _ in range(1000):
        data = bytearray(written)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        text = refusal(tmp_path / "flipped", bytes(data))
        assert "is damaged" in text or "is not a file of recorded launches" in text


def sealed(archive):
    return b"cuda-tma launches 1 sha256:" + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive


def test_a_flip_below_the_digest_ends_in_a_sentence_or_in_a_launch(written, tmp_path):
    archive, rng = written.partition(b"\n")[2], random.Random(2)
    refused = 0
    for _ in range(1000):
        data = bytearray(archive)
        for _ in range(rng.choice([1, 1, 8])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        refused += refusal(tmp_path / "flipped", sealed(bytes(data))) != ""
    assert refused > 900


def changed(written, change):
    """Return a copy of the recorded file with changed values in its list of launches."""
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["launches.json"])
    change(document, document["launches"][0])
    members["launches.json"] = json.dumps(document).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sealed(made.getvalue())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda document, launch: launch["config"].update(shmem_size=1 << 60), "is not an integer from 0 to"),
        (lambda document, launch: launch["config"].update(grid=[1 << 60, 1, 1]), "is not an integer from 0 to"),
        (lambda document, launch: launch["memory"][0].update(address=1 << 60), "is not an integer from 0 to"),
        (lambda document, launch: launch["memory"][0].update(address=0), "begins before 0x10000,"),
        (lambda document, launch: launch["memory"].append(launch["memory"][0]), "the end of the preceding memory"),
        (lambda document, launch: launch["memory"][0].update(data="0" * 64), "There is no item named"),
        (lambda document, launch: launch["memory"][0].update(data=7), "7 is no str"),
        (lambda document, launch: launch.update(next_address=1 << 60), "is not an integer from 0 to"),
        (lambda document, launch: launch.update(multiprocessor_count=1 << 60), "is not an integer from 0 to"),
        (lambda document, launch: launch.update(arguments=["00" * 40_000]), "an argument has 40000 bytes"),
        (lambda document, launch: launch.update(arguments=["zz"]), "non-hexadecimal number"),
        (lambda document, launch: launch.update(compute_capability=[9]), "not enough values"),
        (lambda document, launch: launch.pop("ptx"), "ptx"),
        (lambda document, launch: document.update(launches=[3]), "cannot be read"),
        (lambda document, launch: document.update(launches={}), "has no settings and no launches"),
    ],
)
def test_wrong_values_are_refused(written, tmp_path, change, text):
    assert text in refusal(tmp_path / "wrong", changed(written, change))


def test_a_bomb_takes_no_memory(tmp_path):
    """The archives of the test have a member that declares 2^60 bytes, a member of 1 GiB of zeros, and a member with a
    list of 300 MiB."""
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("launches.json", "w") as member:
        for _ in range(300):
            member.write(bytes(1 << 20))
    assert "launches.json has more than 268435456 bytes" in refusal(tmp_path / "bomb", sealed(made.getvalue()))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("launches.json", "{}")
    data = made.getvalue()
    at = data.index(b"PK\x01\x02")
    stated = data[: at + 24] + struct.pack("<I", 0xFFFFFFF0) + data[at + 28 :]
    assert "has more than 268435456 bytes" in refusal(tmp_path / "stated", sealed(stated))
    assert time.process_time() - begun < 20
    # The unit of ru_maxrss is KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_deep_json_is_refused(tmp_path):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("launches.json", "[" * 1_000_000)
    assert "cannot be read" in refusal(tmp_path / "deep", sealed(made.getvalue()))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda document, launch: launch.update(entry="absent"), "the recorded PTX does not contain the kernel absent"),
        (lambda document, launch: launch.update(variables={}), "does not contain the address of the variable"),
        (lambda document, launch: launch.update(arguments=[]), "kernel kernel takes 4 arguments, and 0 were given"),
        (lambda document, launch: launch.update(ptx=next(iter(launch["sources"].values()))), "ParseError"),
    ],
)
def test_a_contradiction_is_a_skipped_launch(written, tmp_path, capsys, change, text):
    path = tmp_path / "wrong"
    path.write_bytes(changed(written, change))
    assert cli.main(["sanitize", str(path)]) == 3
    assert text in capsys.readouterr().out


# ---- the command ----


def test_the_command_replays(written, launched, tmp_path, capsys):
    path = tmp_path / "launches"
    path.write_bytes(written)
    assert cli.main(["sanitize", str(path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    (launch,) = answer["launches"]
    assert (launch["kernel"], launch["schedules"]) == ("the kernel", [["early", 0], ["late", 0], ["random", 0]])
    assert [finding["message"] for finding in launch["findings"]] == [each.message for each in launched[1].findings]
    assert cli.main(["sanitize", str(path), "--kernel", "absent"]) == 3
    assert cli.main(["sanitize", str(path), "--suppress", "race:*:known", "--schedules", "1"]) == 0
    assert "1 launch judged under 1 schedule" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--grid", "1"], "--grid is only for a single kernel, not for recorded launches"),
        (["--json", "launches"], "an input of this command; name another file"),
        (["--record", "launches"], "an input of this command; name another file"),
    ],
)
def test_misuse(written, tmp_path, monkeypatch, capsys, options, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launches").write_bytes(written)
    assert cli.main(["sanitize", "launches", *options]) == 2
    assert text in capsys.readouterr().err


def test_a_damaged_file_is_misuse(written, tmp_path, capsys):
    path = tmp_path / "launches"
    path.write_bytes(written[:-1])
    assert cli.main(["sanitize", str(path)]) == 2
    assert f"{path} is damaged, because its content does not have the SHA-256" in capsys.readouterr().err
    assert launches.is_recording(path)
