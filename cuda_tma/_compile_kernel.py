"""compile(): from source to a kernel of the current device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Protocol

import numpy as np
from cuda.core import Device, Kernel, ObjectCode

from ._compile.compiled import remember
from ._compile.kept import kept_or_compiled
from ._compile.nvrtc import request, run
from ._cuda.driver import require_driver
from ._launch.shared_memory import allow_on_current_device
from ._watchdog.deadlines import arm

__all__ = ["compile"]

_DEADLINE = "CUDA_TMA_WATCHDOG_MS"
_LONGEST_MS = 1_000_000_000  # the header counts them in 32 bits


class SupportsWrite(Protocol):
    """A file, a StringIO: what text is written to."""

    def write(self, text: str, /) -> object: ...


def compile(
    source: str | PathLike[str],
    name: str,
    *,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] | None = None,
    constants: Mapping[str, str] | None = None,
    cache: bool = True,
    logs: SupportsWrite | None = None,
    watchdog_ms: int | None = None,
) -> Kernel:
    """Compile a kernel for the current device, by NVRTC; or take it from disk, where it was kept when it was compiled.

    The include path has cuda_tma's headers, the language is C++17, and the code has line information. The kernel knows
    the types of its parameters, of ``extern "C"`` too, and how much dynamic shared memory it asks for by
    ``cuda_tma::dynamic_shared<T>()``: :func:`launch` heeds both, :func:`parameters_of` says them.

    Parameters
    ----------
    source : str or path
        CUDA C++; or the file that holds it.
    name : str
        The kernel, as C++ calls it: ``"gemm"``, ``"gemm<64>"``, ``"ns::gemm"``; one of several of a name is
        ``"static_cast<void (*)(float)>(scale)"``.
    defines : mapping, optional
        Macros, by name: numbers and strings as C++ reads them, True and False as 1 and 0, None for one without a value.
    options : sequence of str, optional
        NVRTC's, as in ``["--use_fast_math", "-Iinclude"]``; a ``-std`` of their own counts. The target is the device's,
        with the features of its architecture (``sm_90a``).
    constants : mapping of str to str, optional
        C++ expressions of integers that :func:`parameters_of` shall answer, each by any name:
        ``{"threads": "128 * (CONSUMERS + 1)"}``.
    cache : bool, optional
        False: compiled anew, and not kept. Kernels are kept in ``CUDA_TMA_CACHE_DIR``, or else in ``cuda_tma`` below
        ``XDG_CACHE_HOME`` or ``~/.cache``, up to 256 MiB. One is found again if the source, all headers that it
        includes, `defines`, `options`, `constants`, the device's architecture, NVRTC and cuda_tma are the same. Headers
        are found by reading the text: a source with an include whose file is a macro is not kept.
    logs : object with a ``write`` method, optional
        Where the compiler's warnings and remarks are written, of a kernel from disk too: ``sys.stderr``, as for
        cuda.core's ``Program.compile``. Those of what does not compile are in the error.
    watchdog_ms : int, optional
        The longest that a wait of cuda_tma's headers may take, longer than the kernel does when all is well. Who waits
        longer ends, and :func:`synchronize` says who and for what. Waits of other headers, and loops around
        ``try_wait``, have no deadline. None: no watchdog, and nothing of it in the machine code.

    Returns
    -------
    cuda.core.Kernel

    Raises
    ------
    CompileError
        If the source does not compile, with the line and the compiler's log, or has no such kernel.
    ValueError
        If `watchdog_ms` is no number of milliseconds, or `defines` has its macro too.
    RuntimeError
        If there is no NVIDIA driver, or no NVRTC.

    Warns
    -----
    RuntimeWarning
        If the kernel cannot be kept, and why.

    Examples
    --------
    ::

        source = 'extern "C" __global__ void fill(float* out) { out[threadIdx.x] = VALUE; }'
        kernel = cuda_tma.compile(source, "fill", defines={"VALUE": 1.5})
    """
    defines = _with_watchdog(defines, watchdog_ms)
    target = _current_target()
    asked = request(source, name, target=target, defines=defines, options=options, constants=constants)
    compiled = kept_or_compiled(asked) if cache else run(asked)
    if logs is not None:
        logs.write(compiled.log)
    kernel: Kernel = ObjectCode.from_cubin(compiled.cubin, name=name).get_kernel(compiled.lowered_name)
    remember(kernel, compiled)
    if compiled.dynamic_shared_bytes:  # before the first launch, too: kernel.occupancy heeds the limit
        allow_on_current_device(kernel, compiled.dynamic_shared_bytes)
    if watchdog_ms is not None:
        arm(kernel, asked.source, asked.file, watchdog_ms)
    return kernel


def _with_watchdog(defines: Mapping[str, object] | None, watchdog_ms: object) -> Mapping[str, object] | None:
    if watchdog_ms is None:
        return defines
    is_whole = isinstance(watchdog_ms, int | np.integer) and not isinstance(watchdog_ms, bool)
    milliseconds = int(watchdog_ms) if is_whole else 0  # type: ignore[call-overload]
    if not 1 <= milliseconds <= _LONGEST_MS:
        raise ValueError(f"watchdog_ms={watchdog_ms!r}; give milliseconds, 1 to {_LONGEST_MS}")
    if defines and _DEADLINE in defines:
        raise ValueError(
            f"watchdog_ms={watchdog_ms} and defines[{_DEADLINE!r}]={defines[_DEADLINE]!r} are one macro; give "
            "watchdog_ms alone"
        )
    return {**(defines or {}), _DEADLINE: milliseconds}


def _current_target() -> str:
    try:
        major, minor = Device().compute_capability
    except Exception:
        require_driver()  # which says it in this package's words if there is none
        raise
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
