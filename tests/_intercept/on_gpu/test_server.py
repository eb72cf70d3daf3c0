"""Tests of the server process for a program on a GPU, with requests of any bytes, launches that do not end, and
Ctrl-C."""

from __future__ import annotations

import socket
import struct
from threading import Thread

import numpy as np
import pytest

from cuda_tma._intercept.journal import make_folder, read_journals
from cuda_tma._intercept.on_gpu.judge import CAPTURES
from cuda_tma._intercept.on_gpu.messages import Request
from cuda_tma._intercept.on_gpu.server import Server
from cuda_tma._intercept.on_gpu.table import read_tables
from cuda_tma._intercept.options import Options, write_options
from cuda_tma._intercept.startup.cuda_tma_startup import ALIVE

PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry never(.param .u64 values) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p;
    ld.param.u64 %rd1, [values];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}
"""
PROCESS, ADDRESS = 17, 1 << 40
HELLO = struct.pack("<4i64s", 9, 0, 132, 13000, b"a GPU")


@pytest.fixture
def folder(tmp_path):
    make_folder(tmp_path)
    (tmp_path / CAPTURES).mkdir()
    (tmp_path / ALIVE).touch()
    write_options(Options(on_gpu=True, schedules=1, time_limit=20.0), tmp_path)
    return tmp_path


def part(tag: int, data: bytes) -> bytes:
    return struct.pack("<QQ", tag, len(data)) + data


def write_before(folder, launch: int) -> None:
    """Write the first file of a launch of kernel 1, with one array of zeros."""
    fixed = struct.pack("<Q11I4x", 1, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0)
    parts = [part(1, fixed), part(2, struct.pack("<Q", ADDRESS)), part(3, struct.pack("<II", 0, 8))]
    parts += [part(6, struct.pack("<QQ", ADDRESS, 0) + bytes(64))]
    (folder / CAPTURES / f"{PROCESS}-{launch}.before").write_bytes(b"".join(parts))


def begun(folder) -> Server:
    """Return a server on which the test's kernel is registered with the number 1."""
    server = Server(folder, PROCESS)
    assert server.answer(Request.HELLO, HELLO) == struct.pack("<QII", 256 << 20, 0, 16)
    server.answer(Request.IMAGE, struct.pack("<Q", 5) + PTX)
    reply = server.answer(Request.FUNCTION, struct.pack("<QQ", 1, 5) + b"never")
    assert reply == struct.pack("<II", 1, 0)
    return server


def end(server: Server) -> None:
    """Close the connection, as at the end of the program."""
    ours, theirs = socket.socketpair()
    ours.close()
    server.serve(theirs)


def test_a_launch_that_does_not_end_is_judged_when_the_program_ends(folder):
    server = begun(folder)
    write_before(folder, 3)
    assert server.answer(Request.BEFORE, struct.pack("<QQ", 1, 3)) == b"\1"
    end(server)
    server.judge_all()
    server.end()
    (launch,) = read_journals(folder).launches
    assert launch.report is not None
    assert [each.kind for each in launch.report.errors] == ["no-progress"]
    assert launch.hardware == "not compared: the launch on the GPU has not ended"
    assert [*(folder / CAPTURES).iterdir()] == []
    (table,) = read_tables(folder)
    assert (table.gpu, [each.name for each in table.kernels]) == ("a GPU", ["never"])


def test_after_an_interrupt_no_launch_is_judged(folder):
    server = begun(folder)
    write_before(folder, 3)
    server.answer(Request.BEFORE, struct.pack("<QQ", 1, 3))
    server.interrupt()
    end(server)
    server.judge_all()
    journals = read_journals(folder)
    assert journals.launches == ()
    assert journals.notes == ("captured launches that are not checked, because of an interrupt: 1",)


def test_a_missing_file_is_a_skipped_launch(folder):
    server = begun(folder)
    server.answer(Request.BEFORE, struct.pack("<QQ", 1, 3))
    end(server)
    server.judge_all()
    (launch,) = read_journals(folder).launches
    assert launch.skipped.startswith("FileNotFoundError")


def test_launches_of_graphs_are_noted(folder):
    begun(folder).answer(Request.GRAPHS, struct.pack("<Q", 3))
    assert read_journals(folder).notes == ("launches of graphs, whose kernels are not checked: 3",)


def test_requests_of_any_bytes_end_in_a_note(folder):
    chance, server = np.random.default_rng(0), begun(folder)
    for kind in (*Request, 0, 99):
        for size in (0, 1, 8, 16, 40):
            assert isinstance(server.answer(int(kind), chance.bytes(size)), bytes)
    known = ("a request of the program cannot be read", "launches of graphs")
    assert all(note.startswith(known) for note in read_journals(folder).notes)


def test_a_cut_request_ends_the_connection(folder):
    server = begun(folder)
    ours, theirs = socket.socketpair()
    thread = Thread(target=server.serve, args=(theirs,))
    thread.start()
    ours.sendall(struct.pack("<I4xQ", Request.IMAGE, 100) + b"short")
    ours.close()
    thread.join(10)
    assert not thread.is_alive()
