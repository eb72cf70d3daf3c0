"""A run of a program below the command.

The processes of the program have a session, whose journals the command reads when the program ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from .journal import UNFINISHED, Journals, make_folder, read_journals
from .leaks import leaked
from .on_gpu.judge import CAPTURES
from .on_gpu.table import GpuTable, read_tables
from .options import Options, read_options, write_options
from .servers import listening
from .startup.cuda_tma_startup import ALIVE, ON_GPU, UNREADY, VARIABLE

__all__ = ["Ended", "argv_of", "run_program", "session_folder"]

_STARTUP = Path(__file__).parent / "startup"
_DRIVER = Path(__file__).parent / "libcuda" / "libcuda.so"
_BESIDE_DRIVER = Path(__file__).parent / "on_gpu" / "library" / "libongpu.so"
_LIBRARIES = "lib"  # The folder with the driver library is inside the folder of the session.
_NAMES = ("libcuda.so.1", "libcuda.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so")
# The command waits five seconds for forked processes that outlive the program and launch no kernels.
_GRACE_SECONDS = 5.0
_LAUNCH_SECONDS = 600.0  # The command waits ten minutes for forked processes that are running a launch.
_POLL_SECONDS = 0.05
_NO_PYTHON = (
    "no Python of the program loaded the adapters, and no other program used the driver. Start Python without -I, -E "
    "and -S, which ignore PYTHONPATH; link C++ with nvcc -cudart shared"
)
_NO_DRIVER = "no process of the program launched a kernel through the driver, or LD_PRELOAD did not reach it"
_NO_KERNEL = "the program launched no kernel"


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended, with its journals.

    Attributes
    ----------
    journals : Journals
    status : int
        The exit status of the program, or 128 plus the number of the signal that ended it.
    tables : tuple of GpuTable
        The tables of the kernels that the program's processes launched on a GPU.
    """

    journals: Journals
    status: int
    tables: tuple[GpuTable, ...] = ()


@contextmanager
def session_folder(options: Options) -> Iterator[Path]:
    """Make the folder of a session, and remove the folder at the end."""
    folder = Path(mkdtemp(prefix="cuda-tma-"))
    try:
        make_folder(folder)
        write_options(options, folder)
        (folder / ALIVE).touch()
        (folder / CAPTURES).mkdir()
        _link_driver(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _link_driver(folder: Path) -> None:
    """Make the folder in which a program finds the driver library and the runtime under their usual names."""
    (folder / _LIBRARIES).mkdir()
    for name in _NAMES:
        (folder / _LIBRARIES / name).symlink_to(_DRIVER)


def argv_of(command: Sequence[str]) -> list[str]:
    """Return the command with the path of its program.

    The search begins in the folder of this Python, so that ``python`` runs the same interpreter.

    Raises
    ------
    FileNotFoundError
        If the program does not exist.
    """
    name, rest = command[0], [*command[1:]]
    if name.endswith(".py") and os.path.isfile(name) and not os.access(name, os.X_OK):
        return [sys.executable, name, *rest]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=path)
    if found is None:
        hint = f"; did you mean ./{name}?" if os.access(name, os.X_OK) else ""
        raise FileNotFoundError(f"the program {name} does not exist{hint}")
    return [found, *rest]


def run_program(argv: Sequence[str], folder: Path, *, on_gpu: bool = False, **streams: Any) -> Ended:
    """Run a program to its end. Then wait for processes that the program started and that still run.

    Raises
    ------
    OSError
        If the program cannot be started.
    """
    environment = {**os.environ, **(_on_gpu(folder) if on_gpu else {VARIABLE: str(folder)})}
    paths = {"LD_PRELOAD": _BESIDE_DRIVER} if on_gpu else {"LD_LIBRARY_PATH": folder / _LIBRARIES}
    for name, first in {"PYTHONPATH": _STARTUP, **paths}.items():
        environment[name] = os.pathsep.join([str(first), *filter(None, [os.environ.get(name)])])
    served = (ON_GPU, "on_gpu.server") if on_gpu else (VARIABLE, "driver.remote")
    with listening(folder, *served), _forwarding() as started:
        process = subprocess.Popen(argv, env=environment, **streams)
        started.append(process)
        status = process.wait()
        _wait_for_others(folder)
    journals = _with_leaks(_with_causes(read_journals(folder), folder, on_gpu, status), folder)
    return Ended(journals, status if status >= 0 else 128 - status, read_tables(folder))


def _on_gpu(folder: Path) -> dict[str, str]:
    """Return the environment of a program on a GPU. The runtimes of the program compile in the program's process, which
    then has the PTX.
    """
    return {
        ON_GPU: str(folder),
        "CUDA_TMA_CACHE_DIR": str(folder / "kernels"),
        "CUPY_CACHE_IN_MEMORY": "1",
        "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0",
    }


@contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[Any]]]:
    """Ignore Ctrl-C, which the terminal also sends to the program, and forward SIGTERM to the program."""
    started: list[subprocess.Popen[Any]] = []

    def terminate(*_: object) -> None:
        for process in started:
            process.terminate()

    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: terminate}
    before = {}
    with suppress(ValueError):  # Python raises ValueError outside the main thread.
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield started
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_others(folder: Path) -> None:
    """Wait while another process of the session runs and launches kernels."""
    with open(folder / ALIVE, "rb") as alive:
        size, since = -1, time.monotonic()
        while not _is_free(alive.fileno()):
            now = sum(path.stat().st_size for path in folder.glob("*.journal"))
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > (_LAUNCH_SECONDS if _launches(folder) else _GRACE_SECONDS):
                return
            time.sleep(_POLL_SECONDS)


def _launches(folder: Path) -> bool:
    return any(launch.skipped == UNFINISHED for launch in read_journals(folder).launches)


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _with_leaks(journals: Journals, folder: Path) -> Journals:
    leaks = leaked(folder, read_options(folder).suppressions)
    return replace(journals, launches=(*journals.launches, *leaks))


def _signal(number: int) -> str:
    """Return the name and the description of a signal, as in "SIGSEGV (segmentation fault)"."""
    try:
        return f"{signal.Signals(number).name} ({(signal.strsignal(number) or '').lower()})"
    except ValueError:  # Python has no names for real-time signals.
        return f"signal {number}"


def _with_causes(journals: Journals, folder: Path, on_gpu: bool, status: int) -> Journals:
    """Add notes on a signal that ended the program, and on Python processes that could not load the adapters."""
    notes = dict.fromkeys(journals.notes)
    if status < 0:
        notes[f"{_signal(-status)} ended the program"] = None
    if not (folder / ALIVE).stat().st_size:
        notes[_NO_DRIVER if on_gpu else _NO_PYTHON] = None
    if (folder / UNREADY).exists():
        lines = (folder / UNREADY).read_text("utf-8", "replace").splitlines()
        notes.update(dict.fromkeys(f"{line}: install it there" for line in lines))
    if not journals.launches and not notes:
        notes[_NO_KERNEL] = None
    return replace(journals, notes=tuple(notes))
