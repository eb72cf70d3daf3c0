"""The conversion of a launch to JSON values and back, for journals and for processes of pytest-xdist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..simulate._config import Config
from ..simulate._ptx import Place
from .launched import Launched
from .launches import RecordedLaunch
from .launches.report_values import report_of, values_of

__all__ = ["launched_of", "values_of_launched"]

_CONFIG = ("grid", "block", "cluster", "shmem_size", "is_cooperative", "programmatic_stream_serialization")


def values_of_launched(launch: Launched) -> dict[str, Any]:
    """Return the values of a launch, without the texts of its sources and without its recording."""
    config, report, at = launch.config, launch.report, launch.launched_at
    return {
        "number": launch.number,
        "kernel": launch.kernel,
        "runtime": launch.runtime,
        "config": [getattr(config, name) for name in _CONFIG] if config is not None else None,
        "seconds": launch.seconds,
        "report": values_of(report) if report is not None else None,
        "skipped": launch.skipped,
        "is_judged": launch.is_judged,
        "sources": {},
        "generated": launch.generated,
        "hardware": launch.hardware,
        "launched_at": [at.file, at.line, at.column, at.function] if at is not None else None,
    }


def launched_of(
    values: dict[str, Any], texts: Mapping[str, str], recorded: Callable[[], RecordedLaunch] | None = None
) -> Launched:
    """Return the launch that the values describe. The argument `texts` contains the launch's sources by the keys in the
    values.
    """
    config, report, at = values["config"], values["report"], values["launched_at"]
    return Launched(
        **{
            **values,
            "config": _config(config) if config else None,
            "report": report_of(report) if report is not None else None,
            "sources": {name: texts[key] for name, key in values["sources"].items() if key in texts},
            "generated": tuple(values["generated"]),
            "recorded": recorded,
            "launched_at": Place(*at) if at is not None else None,
        }
    )


def _config(values: Sequence[Any]) -> Config:
    grid, block, cluster, *rest = values
    extents = (None if each is None else tuple(each) for each in (grid, block, cluster))
    return Config(**dict(zip(_CONFIG, (*extents, *rest), strict=True)))
