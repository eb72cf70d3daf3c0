"""The process of a session for one program on a GPU, which answers the library and checks the captured launches.

The client is ``library/channel.c``. One thread answers requests at once. Another thread checks the launches in sequence
while the program continues. The program waits only if too many launches are waiting for their check.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import time
from collections import deque
from pathlib import Path
from threading import Condition, Thread

from ..connection import received
from ..journal import Journal
from ..options import read_options
from ..startup.cuda_tma_startup import ALIVE, ON_GPU
from .judge import CAPTURES, Judge
from .kernels import GpuKernel, Images
from .messages import Request, counts_of, function_reply, gpu_of, limits_reply, numbers_of
from .table import write_table

__all__ = ["Server", "main"]

# The file library/channel.c defines the same layout of requests and answers.
_REQUEST, _ANSWER = struct.Struct("<I4xQ"), struct.Struct("<Q")
_MOST_BYTES = 1 << 30  # _MOST_BYTES limits the size of a request.
_MOST_WAITING = 64  # _MOST_WAITING limits the launches that wait for their check.
_PATIENCE_SECONDS = 10.0  # The server waits ten seconds for the end of a launch, because a launch on the GPU may hang.


def main(handle: int) -> None:
    """Serve the program at the other end of a socket until the program ends. Then check the remaining launches."""
    folder = Path(os.environ[ON_GPU])
    with open(folder / ALIVE, "a") as alive:
        fcntl.flock(alive.fileno(), fcntl.LOCK_SH)
        alive.write(".")
        alive.flush()
        server = Server(folder, _peer(handle))
        signal.signal(signal.SIGINT, lambda *_: server.interrupt())
        reader = Thread(target=server.serve, args=(socket.socket(fileno=handle),), daemon=True)
        reader.start()
        server.judge_all()
        server.end()


def _peer(handle: int) -> int:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(handle)) as connection:
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return 0


class Server:
    """The kernels and launches of one program.

    Parameters
    ----------
    folder : Path
        The folder of the session.
    process : int
        The process number of the program.
    """

    def __init__(self, folder: Path, process: int):
        self._folder, self._process = folder, process
        self._options, self._journal = read_options(folder), Journal(folder)
        self._gpu = gpu_of(struct.pack("<4i64s", 9, 0, 1, 0, b""))
        self._images, self._judge = Images(self._gpu.compute_capability), Judge(self._options, self._journal, self._gpu)
        self._kernels: dict[int, GpuKernel] = {}
        # _running maps a launch that runs on the GPU to its kernel and its start time.
        self._running: dict[int, tuple[int, float]] = {}
        # Each entry contains a kernel, a launch of the kernel, and a flag that is true after the end of the launch.
        self._waiting: deque[tuple[int, int, bool]] = deque()
        self._changed = Condition()
        self._is_open, self._is_interrupted = True, False
        self._answers = {
            Request.HELLO: self._hello,
            Request.IMAGE: self._image,
            Request.FUNCTION: self._function,
            Request.CODE: self._code,
            Request.BEFORE: self._before,
            Request.AFTER: self._after,
            Request.COUNTS: self._counts,
            Request.GRAPHS: self._graphs,
        }

    # ---- requests ----

    def serve(self, connection: socket.socket) -> None:
        """Answer requests until the program ends."""
        try:
            with contextlib.suppress(OSError, ValueError):
                while head := received(connection, _REQUEST.size):
                    kind, size = _REQUEST.unpack(head)
                    if size > _MOST_BYTES:
                        break
                    reply = self.answer(kind, received(connection, size))
                    connection.sendall(_ANSWER.pack(len(reply)) + reply)
        finally:
            with self._changed:
                self._is_open = False
                self._changed.notify_all()

    def answer(self, kind: int, data: bytes) -> bytes:
        """Return the reply to a request of the library."""
        try:
            return self._answers[Request(kind)](data)
        except Exception as error:  # The server checks each request, because a program may send arbitrary bytes.
            self._journal.noted(f"a request of the program cannot be read: {type(error).__name__}: {error}")
            return b""

    def _hello(self, data: bytes) -> bytes:
        self._gpu = gpu_of(data)
        self._images = Images(self._gpu.compute_capability)
        self._judge = Judge(self._options, self._journal, self._gpu)
        return limits_reply(self._options.capture_bytes, self._options.every, self._options.configurations)

    def _image(self, data: bytes) -> bytes:
        self._images.add(numbers_of(data, 1)[0], data[8:])
        return b""

    def _code(self, data: bytes) -> bytes:
        self._images.add_code(data)
        return b""

    def _function(self, data: bytes) -> bytes:
        number, image = numbers_of(data, 2)
        kernel = self._kernels[number] = self._images.kernel(image, data[16:].decode("utf-8", "replace"))
        if kernel.reason:
            self._judge.skip(kernel)
        return function_reply(not kernel.reason and self._judge.wants(kernel), kernel.variables)

    def _before(self, data: bytes) -> bytes:
        number, launch = numbers_of(data, 2)
        kernel = self._kernels[number]
        with self._changed:
            self._running[launch] = number, time.monotonic()
            self._changed.notify_all()
        return bytes([not kernel.reason and not self._judge.is_complete()])

    def _after(self, data: bytes) -> bytes:
        (launch,) = numbers_of(data, 1)
        with self._changed:
            number, _ = self._running.pop(launch, (0, 0.0))
            if number:
                self._waiting.append((number, launch, True))
            self._changed.notify_all()
            self._changed.wait_for(lambda: len(self._waiting) <= _MOST_WAITING)
        return b""

    def _counts(self, data: bytes) -> bytes:
        self._kernels[numbers_of(data, 1)[0]].counts = counts_of(data[8:])
        return b""

    def _graphs(self, data: bytes) -> bytes:
        self._journal.noted(f"launches of graphs, whose kernels are not checked: {numbers_of(data, 1)[0]}")
        return b""

    # ---- checks ----

    def interrupt(self) -> None:
        """Stop the checks of launches once the program has ended. The signal of Ctrl-C is for the program, which may
        continue.
        """
        self._is_interrupted = True

    def judge_all(self) -> None:
        """Check launches until the program has ended and all launches are checked."""
        while (item := self._next()) is not None:
            number, launch, has_ended = item
            before, after = (self._folder / CAPTURES / f"{self._process}-{launch}.{end}" for end in ("before", "after"))
            self._judge.judge(self._kernels[number], before, after if has_ended else None)

    def _next(self) -> tuple[int, int, bool] | None:
        with self._changed:
            self._drop_waiting()
            while not self._waiting:
                if not self._is_open and not self._running:
                    return None
                self._take_hanging()
                if not self._waiting:
                    self._changed.wait(0.5 if self._running else None)
            item = self._waiting.popleft()
            self._changed.notify_all()
            return item

    def _drop_waiting(self) -> None:
        if self._is_interrupted and not self._is_open and (self._waiting or self._running):
            count = len(self._waiting) + len(self._running)
            self._journal.noted(f"captured launches that are not checked, because of an interrupt: {count}")
            self._waiting.clear()
            self._running.clear()

    def _take_hanging(self) -> None:
        """Check a launch that does not end on the GPU."""
        for launch, (number, since) in [*self._running.items()]:
            if not self._is_open or time.monotonic() - since > _PATIENCE_SECONDS:
                del self._running[launch]
                self._waiting.append((number, launch, False))

    def end(self) -> None:
        """Write the table of the kernels when the program has ended."""
        write_table(self._folder, self._process, self._gpu, self._kernels.values())
