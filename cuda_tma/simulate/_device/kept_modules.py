"""A cache on disk of parsed PTX modules, for long texts that an earlier process of the user has parsed.

The name of an entry contains the digest of the text, the kernel's name and the version of the parser. An entry begins
with the digest of its own content. An entry that is cut short or changed counts as absent, and is written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ..._compile.disk_cache import MODULE_SUFFIX, DiskCache, cache_folder
from ..._version import __version__
from .. import _ptx
from .._ptx import Module, read
from .._ptx.stored import packed, unpacked

__all__ = ["LEAST_CHARACTERS", "keep", "kept"]

LEAST_CHARACTERS = 1 << 18  # A shorter text is not stored, because the parser reads it in less than 50 ms.
_MOST_BYTES = 16 << 20  # An entry of 16 MB takes two seconds to read, so a larger module is not stored.
_MAGIC = b"cuda_tma module 1\n"
_DIGEST_BYTES = 32


def kept(text: str, name: str, check: Callable[[], None]) -> tuple[Module, str] | None:
    """Return the stored module of a text, and the path of its entry.

    The module is None if the text is short, or if the cache does not contain it.
    """
    disk = _disk(text)
    if disk is None:
        return None
    key = _key(text, name)
    try:
        return _module(disk.content(f"{key}{MODULE_SUFFIX}", _MOST_BYTES), key, text, check)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def keep(text: str, name: str, module: Module, entry: str, bodies: Iterable[str]) -> None:
    """Store a module with the bodies of some functions, if the text is long and the disk accepts the entry."""
    disk = _disk(text)
    if disk is None:
        return
    key = _key(text, name)
    body = json.dumps({"key": key, "module": packed(module, entry, bodies)}, separators=(",", ":")).encode()
    if len(body) < _MOST_BYTES - len(_MAGIC) - _DIGEST_BYTES:
        # An error on the disk has no effect, except that the next process parses the text again.
        with suppress(OSError):
            disk.keep(f"{key}{MODULE_SUFFIX}", _MAGIC + hashlib.sha256(body).digest() + body)


def _module(content: bytes, key: str, text: str, check: Callable[[], None]) -> tuple[Module, str]:
    start = len(_MAGIC) + _DIGEST_BYTES
    body = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(body).digest():
        raise ValueError("the file is not an entry, or the entry is damaged")
    check()
    found = json.loads(body)
    if type(found) is not dict or found["key"] != key:
        raise ValueError("the entry belongs to another key")
    return unpacked(found["module"], lambda: read(text, check), check)


def _disk(text: str) -> DiskCache | None:
    if len(text) < LEAST_CHARACTERS:
        return None
    with suppress(RuntimeError):  # A user without a home folder has no cache.
        return DiskCache(cache_folder())
    return None


def _key(text: str, name: str) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return hashlib.sha256(json.dumps([__version__, _reader(), name, digest]).encode()).hexdigest()


@lru_cache(maxsize=1)
def _reader() -> str:
    """Return the digest of the source of the PTX parser, which differs between two versions of the package."""
    digest = hashlib.sha256()
    for path in sorted(Path(str(_ptx.__file__)).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
