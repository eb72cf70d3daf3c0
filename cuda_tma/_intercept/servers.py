"""The server processes of a session, one for each program without Python that calls the driver."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from .startup.cuda_tma_startup import VARIABLE

__all__ = ["SOCKET", "listening"]

SOCKET = "server"  # The name of the socket in the folder of the session is the same in libcuda/remote.c.
_CODE = "import sys; sys.path[:] = {path!r}; from cuda_tma._intercept.{module} import main; main({handle})"
_BACKLOG = 64


@contextmanager
def listening(folder: Path, variable: str = VARIABLE, module: str = "driver.remote") -> Iterator[None]:
    """Start a server for each process that connects to the socket of a session. End all servers at the end.

    Parameters
    ----------
    folder : Path
    variable : str
        The environment variable that passes the folder to a server.
    module : str
        The module of this room whose function `main` serves.
    """
    listener = socket.socket(socket.AF_UNIX)
    _bind(listener, folder)
    started: list[subprocess.Popen[bytes]] = []
    thread = Thread(target=_accept, args=(listener, {variable: str(folder)}, module, started), daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()
        for process in started:
            process.terminate()
            process.wait()


def _bind(listener: socket.socket, folder: Path) -> None:
    """Bind a socket by a short path, because the path of a socket has at most 107 bytes."""
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{SOCKET}")
    finally:
        os.close(directory)
    listener.listen(_BACKLOG)


def _accept(
    listener: socket.socket, environment: dict[str, str], module: str, started: list[subprocess.Popen[bytes]]
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            handle = connection.fileno()
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CODE.format(path=sys.path, module=module, handle=handle)],
                env={**os.environ, **environment},
                pass_fds=[handle],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            started.append(process)
