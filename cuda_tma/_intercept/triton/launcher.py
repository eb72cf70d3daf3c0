"""The launches of Triton, which the session receives with the arguments of the kernel in PTX."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from triton.runtime import _allocation

from ...simulate._config import Config
from .arguments import Descriptors, flat

__all__ = ["WARP", "launcher_of"]

WARP = 32


def launcher_of(session: Any) -> Callable[[Any, Any], Callable[..., None]]:
    """Return a function that makes the launcher of a kernel, as Triton's `launcher_cls` does."""

    def launcher(source: Any, metadata: Any) -> Callable[..., None]:
        descriptors = getattr(metadata, "tensordesc_meta", None)
        maps = Descriptors(descriptors, session.device.compute_capability, session.device.address)
        types = [*source.signature.values()]

        def launch(x: int, y: int, z: int, stream: Any, function: Any, packed: Any, launch_metadata: Any,
                   enter: Any, leave: Any, *values: Any) -> None:  # fmt: skip
            if x * y * z <= 0:
                return
            _call(enter, launch_metadata)
            with _without_torch_functions():
                arguments = [*flat(values, types, maps), *_scratch(metadata, x * y * z, stream)]
            _launch(session, metadata, function, (x, y, z), arguments)
            _call(leave, launch_metadata)

        return launch

    return launcher


def _call(hook: Any, launch_metadata: Any) -> None:
    if hook is not None and launch_metadata is not None:
        hook(launch_metadata)


def _launch(session: Any, metadata: Any, function: Any, grid: tuple[int, int, int], arguments: list[Any]) -> None:
    name, ptx = function
    ctas = getattr(metadata, "num_ctas", 1)
    config = Config(
        grid=grid,
        block=metadata.num_warps * WARP,
        cluster=None if ctas == 1 else ctas,
        shmem_size=metadata.shared,
        is_cooperative=bool(metadata.launch_cooperative_grid),
        programmatic_stream_serialization=bool(metadata.launch_pdl),
    )
    with _without_torch_functions():
        session.launch(name, ptx, name, config, arguments, runtime="triton")


def _without_torch_functions() -> Any:
    torch = sys.modules.get("torch")
    return contextlib.nullcontext() if torch is None else torch._C.DisableTorchFunction()


def _scratch(metadata: Any, programs: int, stream: Any) -> list[Any]:
    """Return the last two arguments of every kernel, which are memory that the kernel itself needs."""
    ctas = programs * getattr(metadata, "num_ctas", 1)
    return [
        _allocated(metadata.global_scratch_size * ctas, metadata.global_scratch_align, _allocation._allocator, stream),
        _allocated(
            metadata.profile_scratch_size * ctas,
            metadata.profile_scratch_align,
            getattr(_allocation, "_profile_allocator", None),
            stream,
        ),
    ]


def _allocated(size: int, alignment: int, allocator: Any, stream: Any) -> Any:
    return 0 if size == 0 else allocator.get()(size, alignment, stream)
