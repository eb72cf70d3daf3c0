"""The journals of a session. Each process appends its events to its own file, with one line of JSON for each event.

A process may be killed at any time. The journal of the process then contains every launch that ended, and the launch
that was running. If a line cannot be written, for example on a full disk, the process counts the launch in a file whose
space is already allocated.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._budget import SOURCE_BYTES
from .launched import Launched
from .launched_values import launched_of, values_of_launched
from .launches import RecordedLaunch
from .launches.values import blobs_of, launch_of, values_of_launch

__all__ = ["LOST", "UNFINISHED", "Journal", "Journals", "make_folder", "read_journals"]

# The folder contains the PTX and the memory of recorded launches in files that are named by their SHA-256.
BLOBS = "blobs"
LOST = "lost"  # The file `lost` counts launches that no journal could store.
# The file contains the number of lost launches, the number of lost launches with errors, and the last error number.
_COUNTS = struct.Struct("<QQQ")
UNFINISHED = "the process ended during this launch"


class Journal:
    """A sink that writes the events of this process to a file at once. A forked process begins its own file.

    Parameters
    ----------
    folder : Path
        The folder of the session.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._process, self._name, self._cause = 0, "", 0
        self._notes, self._quoted = set[str](), set[tuple[int, str]]()

    def begun(self, launch: Launched) -> None:
        """Write to the journal that a launch begins."""
        self._write({"begun": values_of_launched(launch)})

    def ended(self, launch: Launched) -> None:
        """Write a launch and its report to the journal."""
        report = launch.report
        quotes = report is not None and (report.findings or report.suppressed)
        keys = {name: self._quote(text) for name, text in launch.sources.items()} if quotes else {}
        event = {"ended": {**values_of_launched(launch), "sources": keys}, "recorded": self._record(launch)}
        if not self._write(event):
            self._count_lost(report is not None and bool(report.errors))

    def noted(self, text: str) -> None:
        """Write a note to the journal. Write each text only once."""
        if text not in self._notes:
            self._notes.add(text)
            self._write({"note": text})

    def _quote(self, text: str) -> str:
        """Write a text that findings quote, once in each process. Return the key of the text."""
        text = text[:SOURCE_BYTES]
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        known = os.getpid(), key
        if known not in self._quoted and self._write({"source": key, "text": text}):
            self._quoted.add(known)
        return key

    def _record(self, launch: Launched) -> dict[str, Any] | None:
        """Write the blobs of a recorded launch that no process has written before. Return the values of the launch."""
        if launch.recorded is None:
            return None
        values, blobs = values_of_launch(launch.recorded())
        try:
            for key, data in blobs.items():
                path = self._folder / BLOBS / key
                if not path.exists():
                    partial = path.with_name(f"{key}.{os.getpid()}")
                    partial.write_bytes(data)
                    partial.rename(path)
        except OSError as error:
            self.noted(f"a launch of {launch.kernel} is not recorded: {error.strerror}")
            return None
        return values

    def _write(self, event: dict[str, Any]) -> bool:
        """Append a line completely, or not at all. The file does not stay open, because a program may close every file
        descriptor.
        """
        line = json.dumps(event).encode() + b"\n"
        try:
            handle = os.open(self._path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                before = os.fstat(handle).st_size
                if os.write(handle, line) == len(line):
                    return True
                os.ftruncate(handle, before)
                self._cause = errno.ENOSPC
            finally:
                os.close(handle)
        except OSError as error:
            self._cause = error.errno or errno.EIO
        return False

    def _path(self) -> Path:
        """Return the path of this process's file. The name has a random part, because the system may use a process
        number again.
        """
        if self._process != os.getpid():
            self._process, self._name = os.getpid(), f"{os.getpid()}-{os.urandom(4).hex()}.journal"
        return self._folder / self._name

    def _count_lost(self, has_errors: bool) -> None:
        """Count a launch in a file whose space is already allocated. The command may have ended and removed the folder
        of the file.
        """
        with suppress(OSError), open(self._folder / LOST, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with mmap.mmap(file.fileno(), _COUNTS.size) as counts:
                launches, errors, _ = _COUNTS.unpack_from(counts)
                _COUNTS.pack_into(counts, 0, launches + 1, errors + has_errors, self._cause)


def make_folder(folder: Path) -> None:
    """Make the folder of blobs, and the file that counts lost launches."""
    (folder / BLOBS).mkdir()
    (folder / LOST).write_bytes(bytes(_COUNTS.size))


# ---- reading ----


@dataclass(frozen=True, slots=True)
class Journals:
    """All events of a session.

    Attributes
    ----------
    The launches of one process after those of another, in the order in which they began.
        The launches of one process after another, in the order in which they began.
    notes : tuple of str
    lost : int
        The number of launches that no journal could store.
    lost_errors : int
        The number of lost launches with errors.
    cause : str
        The reason why the launches were lost.
    """

    launches: tuple[Launched, ...] = ()
    notes: tuple[str, ...] = ()
    lost: int = 0
    lost_errors: int = 0
    cause: str = ""


def read_journals(folder: Path) -> Journals:
    """Read the events that the processes of a session have written so far."""
    launches: list[Launched] = []
    unfinished: list[Launched] = []
    notes: dict[str, None] = {}
    for path in sorted(folder.glob("*.journal"), key=lambda path: (path.stat().st_mtime_ns, path.name)):
        running: dict[int, Launched] = {}
        texts: dict[str, str] = {}
        for event in _events(path):
            if "begun" in event:
                launch = launched_of(event["begun"], texts)
                running[launch.number] = launch
            elif "ended" in event:
                launch = launched_of(event["ended"], texts, _recording(folder, event.get("recorded")))
                running.pop(launch.number, None)
                launches.append(launch)
            elif "source" in event:
                texts[event["source"]] = event["text"]
            else:
                notes[event["note"]] = None
        unfinished += [launch.with_skipped(UNFINISHED) for launch in running.values()]
    lost, lost_errors, number = _COUNTS.unpack((folder / LOST).read_bytes())
    launches += unfinished[lost:]  # The journals may contain the start of a launch that also counts as lost.
    return Journals(tuple(launches), tuple(notes), lost, lost_errors, os.strerror(number) if number else "")


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each complete line of a journal. A process that was killed may leave an incomplete line."""
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _recording(folder: Path, values: dict[str, Any] | None) -> Callable[[], RecordedLaunch] | None:
    """Return a function that reads a recorded launch together with its blobs."""
    if values is None:
        return None
    return lambda: launch_of(values, {key: (folder / BLOBS / key).read_bytes() for key in blobs_of(values)})
