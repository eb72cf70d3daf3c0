"""The socket between a program and its process of a session, from which a known number of bytes is read."""

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
