"""The server process for a program without Python, which answers the requests of the driver library in the program.

The client is ``libcuda/remote.c``. The program passes the file of its memory, and this process maps the file, so that a
launch reads and writes the program's bytes. The server ends when the program ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from ..connection import received
from ..session import current
from ..startup.cuda_tma_startup import ALIVE, VARIABLE
from .modules import BytesAt
from .server import Server

__all__ = ["main", "serve_connection"]

_ARENA, _ARENA_BYTES = 0x200000000000, 1 << 44  # The header driver.h defines the same address and size of the arena.
# The file remote.c defines the same layout of requests and answers.
_REQUEST, _ANSWER = struct.Struct("<I4xQ"), struct.Struct("<iIQ")
_MOST_BYTES = 1 << 30  # _MOST_BYTES limits the size of a request.
_UNKNOWN = 999  # _UNKNOWN is CUDA_ERROR_UNKNOWN.
_PEER = struct.Struct("3i")


def main(handle: int) -> None:
    """Serve the program at the other end of a socket until the program ends."""
    # The server ignores Ctrl-C, because the signal is for the program, and the server ends together with the program.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=handle)
    Thread(target=_end_with, args=(connection,), daemon=True).start()
    session = current()
    if session is None:
        return
    with open(Path(os.environ[VARIABLE]) / ALIVE, "a") as alive:
        fcntl.flock(alive.fileno(), fcntl.LOCK_SH)
        alive.write(".")
        alive.flush()
        with contextlib.suppress(OSError):
            serve_connection(connection, lambda bytes_at: Server(session, bytes_at))


def _end_with(connection: socket.socket) -> None:
    """End this process when the program ends, even during a launch."""
    process, _, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    # The function os.pidfd_open fails if the program is in another PID namespace, or if the Linux kernel is old.
    with contextlib.suppress(OSError, AttributeError):
        select.select([os.pidfd_open(process)], [], [])
        os._exit(0)


def serve_connection(connection: socket.socket, server_of: Any) -> None:
    """Answer the requests of a connection until the program closes the connection."""
    _, handles, _, _ = socket.recv_fds(connection, 1, 1)
    if not handles:
        return
    server: Server = server_of(_memory(handles[0]))
    # The server sends the output of kernels to the program, which prints it in order with its own output.
    printed = sys.stdout = io.StringIO()
    while True:
        head = received(connection, _REQUEST.size)
        if not head:
            return
        kind, size = _REQUEST.unpack(head)
        if size > _MOST_BYTES:
            return
        result, reply = _answer(server, kind, received(connection, size))
        output = printed.getvalue().encode("utf-8", "replace")
        printed.seek(0)
        printed.truncate()
        connection.sendall(_ANSWER.pack(result, len(output), len(reply)) + output + reply)


def _memory(handle: int) -> BytesAt:
    """Map the file of the program's memory. Return a function that reads the bytes at an address of the program."""
    arena = np.frombuffer(mmap.mmap(handle, _ARENA_BYTES), np.uint8)
    os.close(handle)

    def bytes_at(address: int, size: int) -> np.ndarray[Any, Any]:
        first = address - _ARENA
        if first < 0 or size > _ARENA_BYTES - first:
            raise ValueError(f"address {address:#x} is outside the simulated GPU's memory")
        return arena[first : first + max(size, 1)]

    return bytes_at


def _answer(server: Server, kind: int, data: bytes) -> tuple[int, bytes]:
    try:
        return server.answer(kind, data)
    except Exception as error:
        server.failed(error)
        return _UNKNOWN, b""
