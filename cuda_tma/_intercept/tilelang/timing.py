"""The replacement of TileLang's benchmarks, which run nothing and return NaN. The autotuner uses the first
configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilelang import profiler
from tilelang.autotuner import tuner
from tilelang.profiler import bench

from ..patches import Patches

__all__ = ["install"]


def install(patches: Patches, session: Any) -> None:
    """Replace the benchmarks, and reduce each search to its first configuration."""
    runs = bool(getattr(session.options, "run_benchmarks", False))

    def do_bench(fn: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
        session.note(f"TileLang's do_bench returns NaN{'' if runs else ' and runs nothing'}: {_NO_TIME}")
        if runs:
            fn()
        return math.nan if quantiles is None else [math.nan for _ in quantiles]

    def profile(kernel: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        return do_bench(lambda: None, quantiles=quantiles)

    patches.replace(bench, "do_bench", do_bench)
    patches.replace(profiler, "do_bench", do_bench)
    patches.replace(profiler.Profiler, "do_bench", profile)
    patches.replace(tuner.AutoTuner, "run", _first(tuner.AutoTuner.run, session))


_NO_TIME = "the simulator measures no time"


def _first(own: Callable[..., Any], session: Any) -> Callable[..., Any]:
    def run(search: Any, *arguments: Any, **keywords: Any) -> Any:
        configs = search.configs
        if not callable(configs) and len(configs) > 1:
            session.note(f"TileLang's autotuner takes the first of {len(configs)} configurations: {_NO_TIME}")
            search.configs = [*configs][:1]
        profile = profiler.Profiler.do_bench
        profiler.Profiler.do_bench = lambda *_, **__: 0.0
        try:
            return own(search, *arguments, **keywords)
        finally:
            profiler.Profiler.do_bench = profile

    return run
