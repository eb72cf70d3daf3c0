"""The settings of a session, which the command passes to the processes of a program in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..simulate._suppression import Suppression

__all__ = ["FILE", "Options", "read_options", "write_options"]

FILE = "options.json"


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a session from the options of the command.

    Attributes
    ----------
    compute_capability : tuple of int
    schedules, seed : int
    strict : bool
    time_limit : float or None
    kernel : str
        A regular expression. A launch is checked if the expression matches a part of the kernel's name.
    launch_skip : int
        The number of matching launches before the first checked launch.
    launch_count : int, optional
        The largest number of checked launches, or None for all.
    suppressions : tuple of Suppression
    records : str
        The checked launches that the session records: ``"all"``, those with ``"findings"``, or none (an empty text).
    on_gpu : bool
        Whether the launches of the program go to a GPU.
    every : int
        The interval of checked launches with one configuration on a GPU, or 0 for only the first launch.
    configurations : int
        The largest number of configurations of a kernel that are checked on a GPU.
    capture_bytes : int
        The most memory that a checked launch may reach on a GPU.
    """

    compute_capability: tuple[int, int] = (9, 0)
    schedules: int = 4
    seed: int = 0
    strict: bool = False
    time_limit: float | None = None
    kernel: str = ""
    launch_skip: int = 0
    launch_count: int | None = None
    suppressions: tuple[Suppression, ...] = ()
    records: str = ""
    on_gpu: bool = False
    every: int = 0
    configurations: int = 16
    capture_bytes: int = 256 << 20


def write_options(options: Options, folder: Path) -> None:
    """Write the settings into the folder of a session."""
    (folder / FILE).write_text(json.dumps(asdict(options)), "utf-8")


def read_options(folder: Path) -> Options:
    """Return the settings that :func:`write_options` wrote."""
    values = json.loads((folder / FILE).read_text("utf-8"))
    major, minor = values.pop("compute_capability")
    suppressions = tuple(Suppression(**each) for each in values.pop("suppressions"))
    return Options(compute_capability=(major, minor), suppressions=suppressions, **values)
