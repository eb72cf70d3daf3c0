"""The driver library in this process, and the function that serves the requests of the library."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from typing import Any

from ..session import current
from .server import Server

__all__ = ["attach", "serve"]

NAME = "libcuda.so.1"
_UNKNOWN = 999  # _UNKNOWN is CUDA_ERROR_UNKNOWN.

_Serve = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
_served: list[Any] = []  # The list _served keeps the registered function alive, because the library may still call it.


def attach() -> None:
    """Serve the library that this process has loaded. The library calls this function at its first request."""
    session = current()
    if session is not None and not _served:
        serve(ctypes.CDLL(NAME), Server(session))


def serve(library: ctypes.CDLL, server: Server) -> None:
    """Register a server with a library until Python ends."""
    function = _Serve(_answering(library, server))
    _served[:] = [function]
    library.cuda_tma_serve(function)
    atexit.register(library.cuda_tma_serve, None)


def _answering(library: ctypes.CDLL, server: Server) -> Callable[[int, int | None, int, int | None], int]:
    reply_with = library.cuda_tma_reply
    reply_with.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)

    def answer(kind: int, data: int | None, size: int, reply: int | None) -> int:
        try:
            result, answered = server.answer(kind, ctypes.string_at(data, size) if data else b"")
        except BaseException as error:  # The function catches every exception, because C code calls it.
            server.failed(error)
            return _UNKNOWN
        if reply:
            reply_with(reply, answered, len(answered))
        return result

    return answer
