"""Tests of programs without Python, whose modules and launches a server process handles."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading

import numpy as np
import pytest

from cuda_tma._intercept.driver import remote
from tests._intercept._programs import needs_compiler, run_program

DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
typedef uint64_t address;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuMemAlloc_v2(address *, size_t), cuMemFree_v2(address), cuMemHostUnregister(void *);
int cuMemcpyHtoD_v2(address, const void *, size_t), cuMemcpyDtoH_v2(void *, address, size_t);
int cuMemHostRegister_v2(void *, size_t, unsigned), cuGetExportTable(const void **, const void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
typedef unsigned count;
int cuLaunchKernel(void *, count, count, count, count, count, count, count, void *, void **, void **);
#define CHECK(call) do { int result = (call); if (result) { printf("error %d\n", result); exit(9); } } while (0)
static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .u32 factor = 5;\n"
    ".visible .entry scale(.param .u64 values) {\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [values];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r2, [%rd3];\nld.global.u32 %r3, [factor];\nmul.lo.u32 %r2, %r2, %r3;\nst.global.u32 [%rd3], %r2;\n"
    "ret;\n}\n";
static unsigned values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static void *function;
static void begin(void) {
    void *context, *module;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&function, module, "scale"));
}
static void launch(address at, unsigned threads) {
    void *arguments[] = {&at};
    CHECK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL));
}
static void show(void) {
    for (int i = 0; i < 8; ++i)
        printf("%u ", values[i]);
    fflush(stdout);
}
int main(void) {
"""
COPIES = r"""
    address at;
    begin();
    CHECK(cuMemAlloc_v2(&at, sizeof values));
    CHECK(cuMemcpyHtoD_v2(at, values, sizeof values));
    launch(at, THREADS);
    CHECK(cuMemcpyDtoH_v2(values, at, sizeof values));
    CHECK(cuMemFree_v2(at));
    show();
}
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs C code which calls the driver's interface."""
    return lambda text: run_program(tmp_path, DRIVER + text, "cuda")


@needs_compiler
def test_a_program_has_the_results_of_its_kernel(run):
    ran = run(COPIES.replace("THREADS", "8"))
    assert ran.status == 0 and ran.printed == "5 10 15 20 25 30 35 40 ", ran
    assert [(each["kernel"], each["findings"]) for each in ran.launches] == [("scale", [])]


@needs_compiler
def test_a_wrong_program_is_found(run):
    ran = run(COPIES.replace("THREADS", "9"))
    (found,) = ran.launches[0]["findings"]
    assert ran.status == 1 and found["kind"] == "out-of-bounds", ran
    assert "beyond the end of memory, 32 bytes" in found["message"]


@needs_compiler
def test_registered_memory_has_the_results_too(run):
    ran = run(
        r"""
        begin();
        CHECK(cuMemHostRegister_v2(values, sizeof values, 0));
        launch((address)values, 8);
        values[7] = 1;
        launch((address)values, 8);
        CHECK(cuMemHostUnregister(values));
        show();
    }
    """
    )
    assert ran.status == 0 and ran.printed == "25 50 75 100 125 150 175 5 ", ran


@needs_compiler
def test_a_killed_program_keeps_its_launches(run):
    ran = run(COPIES.replace("THREADS", "8").replace("show();", "show(); abort();"))
    assert ran.status == 128 + 6 and len(ran.launches) == 1, ran


@needs_compiler
def test_the_child_of_a_fork_does_not_speak_for_its_parent(run):
    ran = run(
        r"""
        begin();
        if (fork() == 0)
            _exit(cuInit(0) == 3 && cuMemFree_v2(0) == 3 ? 0 : 1); /* CUDA_ERROR_NOT_INITIALIZED */
        int status;
        wait(&status);
        puts(status == 0 ? "refused" : "answered");
    }
    """
    )
    assert ran.printed == "refused\n", ran


@needs_compiler
def test_nvidias_runtime_in_a_program_is_reported_with_the_option(run):
    ran = run("const void *table; return cuGetExportTable(&table, NULL) == 801 ? 0 : 9; }")
    assert ran.status == 3, ran
    assert [each for each in ran.notes if "Remedy: link it with nvcc -cudart shared" in each]


class Refusing:
    """A stand-in for the server that fails at each request."""

    def answer(self, kind: int, data: bytes) -> tuple[int, bytes]:
        raise ZeroDivisionError

    def failed(self, error: BaseException) -> None:
        pass


def test_a_request_that_fails_does_not_end_the_server(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_ARENA_BYTES", 1 << 16)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    here, there = socket.socketpair()
    with open(tmp_path / "arena", "w+b") as arena, here, there:
        arena.truncate(1 << 16)
        socket.send_fds(here, [b"x"], [arena.fileno()])
        thread = threading.Thread(target=remote.serve_connection, args=(there, lambda _: Refusing()))
        thread.start()
        for _ in range(2):
            here.sendall(struct.pack("<I4xQ", 1, 2) + b"ab")
            assert here.recv(16, socket.MSG_WAITALL) == struct.pack("<iIQ", 999, 0, 0)
        # The server ends after a request that is larger than its limit.
        here.sendall(struct.pack("<I4xQ", 1, 1 << 60))
        thread.join(60)
        assert not thread.is_alive()


def test_the_memory_of_a_program_has_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_ARENA_BYTES", 1 << 16)
    path = tmp_path / "arena"
    path.write_bytes(bytes(range(256)) * 256)
    bytes_at = remote._memory(os.open(path, os.O_RDWR))
    assert bytes_at(0x200000000000 + 256, 4).tolist() == [0, 1, 2, 3]
    bytes_at(0x200000000000, 1)[:] = np.uint8(7)
    assert path.read_bytes()[0] == 7
    for address, size in ((0x200000000000 - 1, 1), (0x200000000000 + 0xFFFF, 2), (0, 1), (0x200000000000, 1 << 60)):
        with pytest.raises(ValueError, match="outside the simulated GPU's memory"):
            bytes_at(address, size)
