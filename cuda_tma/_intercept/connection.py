"""Functions that read a known number of bytes from the socket between a program and the sanitizer's process."""

from __future__ import annotations

import socket

__all__ = ["received"]


def received(connection: socket.socket, size: int) -> bytes:
    """Return the next bytes from a socket, or an empty result if the other end is closed."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
