"""A file that contains recorded launches.

The file begins with a line that consists of ``cuda-tma launches 1 sha256:`` and the hexadecimal SHA-256 of all bytes
after that line. A ZIP archive follows the line. The member ``launches.json`` contains the settings of the session and
every launch. Each distinct text and content of memory is one member ``blobs/<sha256>``, and ``launches.json`` refers to
the member by its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..._budget import RECORDED_BYTES, RECORDING_TEXT_BYTES
from ..._files import first_bytes, opened, write
from .recorded import RecordedLaunch
from .values import blobs_of, launch_of, values_of_launch

__all__ = ["LaunchesError", "Recording", "is_recording", "read_recording", "write_recording"]

VERSION = 1
_NAME = b"cuda-tma launches "
_HEAD = b"cuda-tma launches %d sha256:" % VERSION
_HEAD_BYTES = len(_HEAD) + 64 + 1
_LIST = "launches.json"
_MOST_MEMBERS = 1 << 20
_CHUNK = 1 << 20
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    IndexError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)  # _BROKEN contains the types of errors that a damaged recording can cause.


class LaunchesError(ValueError):
    """The error for a file of launches that cannot be read."""


@dataclass(frozen=True)
class Recording:
    """The recorded launches of a file. An iteration reads each launch when the launch is needed.

    Attributes
    ----------
    path : str
    settings : mapping
        The settings of the session, which are `schedules`, `seed` and `strict`.
    """

    path: str
    settings: Mapping[str, Any]
    _launches: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self._launches)

    def __iter__(self) -> Iterator[RecordedLaunch]:
        """Read the launches one at a time.

        Raises
        ------
        LaunchesError
        """
        with _archive(self.path) as archive, _explained(self.path):
            for values in self._launches:
                sizes = (archive.getinfo(_member(key)).file_size for key in blobs_of(values))
                if sum(sizes) > RECORDED_BYTES:
                    raise ValueError(f"a launch has more than {RECORDED_BYTES} bytes")
                yield launch_of(values, {key: _blob(archive, key) for key in blobs_of(values)})


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins with the header of a file of recorded launches.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    return first_bytes(path, len(_NAME)) == _NAME


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Read the list of launches from a file whose SHA-256 is right.

    Raises
    ------
    OSError
        If the file cannot be read.
    LaunchesError
        If the file is not a complete file of recorded launches.
    """
    path = os.fspath(path)
    with _archive(path) as archive, _explained(path):
        if len(archive.infolist()) > _MOST_MEMBERS:
            raise ValueError(f"it has more than {_MOST_MEMBERS} members")
        if archive.getinfo(_LIST).file_size > RECORDING_TEXT_BYTES:
            raise ValueError(f"its {_LIST} has more than {RECORDING_TEXT_BYTES} bytes")
        listed = json.loads(_read(archive, _LIST))
        settings, launches = listed["settings"], listed["launches"]
        if not isinstance(settings, dict) or not isinstance(launches, list):
            raise ValueError(f"its {_LIST} has no settings and no launches")
        return Recording(path, settings, tuple(launches))


@contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    with opened(path) as file:
        _check_whole(path, file)
        with _explained(path):
            archive = zipfile.ZipFile(file)
        with archive:
            yield archive


def _check_whole(path: str, file: BinaryIO) -> None:
    head = file.read(_HEAD_BYTES)
    if not head.startswith(_HEAD):
        what = f"of another version, and this cuda_tma reads {VERSION}" if head.startswith(_NAME) else "none"
        raise LaunchesError(f"{path} is not a file of recorded launches: its first line is {what}")
    digest = hashlib.sha256()
    while data := file.read(_CHUNK):
        digest.update(data)
    if head[len(_HEAD) :] != digest.hexdigest().encode() + b"\n":
        raise LaunchesError(
            f"{path} is damaged, because its content does not have the SHA-256 that its first line states. Record the "
            "launches again"
        )


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Convert every error about invalid content to one class of errors, with one sentence."""
    try:
        yield
    except LaunchesError:
        raise
    except _BROKEN as error:
        text = f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
        raise LaunchesError(f"{path} contains a recorded launch that cannot be read: {text[:200]}") from None


def _member(key: str) -> str:
    return f"blobs/{key}"


def _blob(archive: zipfile.ZipFile, key: str) -> bytes:
    data = _read(archive, _member(key))
    if hashlib.sha256(data).hexdigest() != key:
        raise ValueError(f"the content of blob {key[:12]} does not match the SHA-256 in its name")
    return data


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a member of the archive, up to the size that the archive states. A decompression bomb exceeds that size."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        parts, left = [], size
        while left > 0 and (data := member.read(min(left, _CHUNK))):
            parts.append(data)
            left -= len(data)
    if left:
        raise ValueError(f"{name} is shorter than the {size} bytes that the archive states")
    return b"".join(parts)


# ---- writing ----


def write_recording(
    path: str | os.PathLike[str],
    launches: Iterable[RecordedLaunch],
    settings: Mapping[str, Any],
) -> int:
    """Write a complete file of recorded launches, or no file. Return the number of launches.

    A symbolic link is not replaced; the function writes to the target of the link. A pipe or a device, such as
    /dev/null, is not replaced but receives the bytes.

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then unchanged.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        return _write_through(path, launches, settings)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "w+b") as file:
            count = _write(file, launches, settings)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write_through(path: Path, launches: Iterable[RecordedLaunch], settings: Mapping[str, Any]) -> int:
    with tempfile.TemporaryFile() as file:
        count = _write(file, launches, settings)
        file.seek(0)
        write(path, file.read())
    return count


def _write(file: BinaryIO, launches: Iterable[RecordedLaunch], settings: Mapping[str, Any]) -> int:
    file.write(_HEAD + b"0" * 64 + b"\n")
    listed: list[dict[str, Any]] = []
    written: set[str] = set()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for launch in launches:
            values, blobs = values_of_launch(launch)
            listed.append(values)
            for key in blobs.keys() - written:
                archive.writestr(_fixed(_member(key)), blobs[key])
                written.add(key)
        document = {"settings": dict(settings), "launches": listed}
        archive.writestr(_fixed(_LIST), json.dumps(document))
    file.seek(_HEAD_BYTES)
    digest = hashlib.sha256()
    while data := file.read(_CHUNK):
        digest.update(data)
    file.seek(len(_HEAD))
    file.write(digest.hexdigest().encode())
    return len(listed)


def _fixed(name: str) -> zipfile.ZipInfo:
    """Return a member of the archive without a date, so that equal launches give equal files."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
