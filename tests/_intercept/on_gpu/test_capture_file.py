"""Tests of the reader of captured launches, which accepts the library's files, and refuses other files with an
error."""

from __future__ import annotations

import random
import struct

import pytest

from cuda_tma._intercept.on_gpu.capture_file import read_capture, read_outcome

LAUNCH, BLOCK, PLACES, STACK, VARIABLE, MEMORY, RESULT, CHANGED = range(1, 9)


def part(tag: int, data: bytes) -> bytes:
    return struct.pack("<QQ", tag, len(data)) + data


def launch(grid=(4, 1, 1), cluster=(2, 1, 1)) -> bytes:
    return struct.pack("<Q11I4x", 7, *grid, 64, 1, 1, *cluster, 512, 1)


BEFORE = [
    part(LAUNCH, launch()),
    part(BLOCK, bytes(range(12))),
    part(PLACES, struct.pack("<4I", 0, 8, 8, 4)),
    part(STACK, b'[["a.py", 3, "main"]]'),
    part(VARIABLE, struct.pack("<QQ", 1 << 40, 4) + b"factor"),
    part(MEMORY, struct.pack("<QQ", 1 << 41, 1) + b"abcd"),
    part(MEMORY, struct.pack("<QQ", 1 << 40, 0) + b"wxyz"),
]


def test_a_launch_is_read(tmp_path):
    (tmp_path / "1.before").write_bytes(b"".join(BEFORE))
    found = read_capture(tmp_path / "1.before")
    assert (found.function, found.arguments) == (7, (bytes(range(8)), bytes(range(8, 12))))
    assert (found.config.grid, found.config.cluster, found.config.shmem_size) == ((2, 1, 1), (2, 1, 1), 512)
    assert found.config.is_cooperative
    assert found.stack == (("a.py", 3, "main"),)
    assert found.variables == {"factor": (1 << 40, 4)}
    assert [(each.address, each.data) for each in found.memory] == [(1 << 40, b"wxyz"), (1 << 41, b"abcd")]


def test_an_outcome_is_read(tmp_path):
    parts = [part(CHANGED, struct.pack("<Q", 1 << 40) + b"new"), part(RESULT, struct.pack("<QQ", 700, 1_500_000))]
    (tmp_path / "1.after").write_bytes(b"".join(parts))
    found = read_outcome(tmp_path / "1.after")
    assert (found.result, found.seconds, found.changed[0].data) == (700, 0.0015, b"new")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "the head of a captured launch has 0 bytes"),
        ([part(LAUNCH, b"short")], "the head of a captured launch has 5 bytes"),
        ([part(LAUNCH, launch((3, 1, 1)))], "not a multiple of the cluster"),
        ([part(LAUNCH, launch()), part(PLACES, struct.pack("<2I", 0, 8))], "exceed its block of 0 bytes"),
        ([part(LAUNCH, launch()), part(MEMORY, b"short")], "has no address"),
        ([part(LAUNCH, launch()), struct.pack("<QQ", BLOCK, 1 << 62)], "its last part is not whole"),
        ([part(LAUNCH, launch()), b"\0"], "its last part is not whole"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, parts, text):
    (tmp_path / "1.before").write_bytes(b"".join(parts))
    with pytest.raises(ValueError, match=text):
        read_capture(tmp_path / "1.before")


def test_an_outcome_without_a_result_is_refused(tmp_path):
    (tmp_path / "1.after").write_bytes(part(CHANGED, bytes(16)))
    with pytest.raises(ValueError, match="has no result"):
        read_outcome(tmp_path / "1.after")


def test_any_change_of_a_byte_ends_in_a_launch_or_in_a_sentence(tmp_path):
    whole, chance, path = b"".join(BEFORE), random.Random(0), tmp_path / "1.before"
    for _ in range(300):
        changed = bytearray(whole)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        try:
            read_capture(path)
        except (ValueError, TypeError, OverflowError, struct.error):
            continue
