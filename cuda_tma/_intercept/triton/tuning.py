"""The replacement of benchmarks and autotuning. No benchmark runs, and autotuning uses the first configuration that
fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from triton import testing
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import autotuner
from triton.runtime.errors import OutOfResources, PTXASError

from ..patches import Patches

__all__ = ["install"]

_BENCHMARKS = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")


def install(patches: Patches, session: Any) -> None:
    """Replace Triton's benchmarks, its reports of performance, and the choice of its autotuner."""
    runs = bool(getattr(session.options, "run_benchmarks", False))
    for name in _BENCHMARKS:
        if hasattr(testing, name):
            patches.replace(testing, name, _benchmark(f"triton.testing.{name}", session, runs))
    if not runs:
        patches.replace(testing.Mark, "run", _report(session))
    patches.replace(autotuner.Autotuner, "prune_configs", _chosen(autotuner.Autotuner.prune_configs, session))


def _benchmark(feature: str, session: Any, runs: bool) -> Callable[..., Any]:
    def benchmark(
        fn: Callable[[], Any],
        *_: Any,
        quantiles: Any = None,
        return_mode: str = "mean",
        **__: Any,
    ) -> Any:
        session.note(f"{feature} returns NaN{'' if runs else ' and runs nothing'}: the simulator measures no time")
        if runs:
            fn()
        if quantiles is not None:
            return math.nan if len(quantiles) == 1 else [math.nan for _ in quantiles]
        return [math.nan] if return_mode == "all" else math.nan

    return benchmark


def _report(session: Any) -> Callable[..., Any]:
    """Replace ``perf_report(...).run``, whose table or plot of times would contain only NaN."""

    def run(mark: Any, *_: Any, return_df: bool = False, **__: Any) -> Any:
        session.note("triton.testing.perf_report runs nothing: the simulator measures no time")
        if not return_df:
            return None
        import pandas

        is_one = isinstance(mark.benchmarks, testing.Benchmark)
        frames = [
            pandas.DataFrame(columns=[*each.x_names, *(f"{name} ({each.ylabel})" for name in each.line_names)])
            for each in ([mark.benchmarks] if is_one else mark.benchmarks)
        ]
        return frames[0] if is_one else frames

    return run


def _chosen(own: Callable[..., list[Any]], session: Any) -> Callable[..., list[Any]]:
    def prune_configs(tuner: Any, kwargs: dict[str, Any], *rest: Any) -> list[Any]:
        configs = own(tuner, kwargs, *rest)
        for config in configs:
            if _fits(tuner, config, kwargs):
                name = getattr(tuner.base_fn, "__name__", "a kernel")
                chosen = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
                session.note(
                    f"triton.autotune of {name} takes the first of {len(configs)} configurations that fits, {chosen}: "
                    "the simulator measures no time"
                )
                return [config]
        return configs

    return prune_configs


def _fits(tuner: Any, config: Any, keywords: dict[str, Any]) -> bool:
    """Return whether a configuration compiles, and needs no more resources than the GPU has."""
    named = {**tuner.nargs, **keywords, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(named)
    try:
        kernel = tuner.fn.run(*tuner.nargs.values(), **{**keywords, "warmup": True, **config.all_kwargs()})
        if hasattr(kernel, "result"):  # The kernel is absent while another thread compiles it.
            kernel = kernel.result()
        if hasattr(kernel, "_init_handles"):
            kernel._init_handles()
    except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
        return False
    return True
