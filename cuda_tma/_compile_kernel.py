"""The function ``compile()``, which compiles a kernel for the current device."""

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
# _LONGEST_MS limits the deadline of the watchdog, because watchdog.cuh counts milliseconds in 32 bits.
_LONGEST_MS = 1_000_000_000


class SupportsWrite(Protocol):
    """A destination of text, such as a file or a StringIO."""

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
    """Compile a kernel for the current device with NVRTC, or load an earlier compilation from disk.

    The include path contains cuda_tma's headers, the language is C++17, and the code has line information. The kernel
    has the types of its parameters, also with ``extern "C"``. The kernel also has the size of the dynamic shared memory
    that it requests with ``cuda_tma::dynamic_shared<T>()``. :func:`launch` checks and uses the types and the size, and
    :func:`parameters_of` returns them.

    Parameters
    ----------
    source : str or path
        The CUDA C++ text, or the path of a file with the text.
    name : str
        The kernel's name in C++: ``"gemm"``, ``"gemm<64>"``, ``"ns::gemm"``. For one of several overloads, write
        ``"static_cast<void (*)(float)>(scale)"``.
    defines : mapping, optional
        Macros by name. The macro of a number or string has that value, True is 1, False is 0, and None defines a macro
        without a value.
    options : sequence of str, optional
        NVRTC's options, as in ``["--use_fast_math", "-Iinclude"]``. An option ``-std`` replaces the default language.
        The target is the device's architecture with its specific features (``sm_90a``).
    constants : mapping of str to str, optional
        C++ integer expressions by name. :func:`parameters_of` returns the value of each expression: ``{"threads": "128
        * (CONSUMERS + 1)"}``.
    cache : bool, optional
        False compiles the kernel again, and does not keep the result. Kernels are kept in ``CUDA_TMA_CACHE_DIR``, or
        else in ``cuda_tma`` below ``XDG_CACHE_HOME`` or ``~/.cache``, up to 256 MiB. A kept kernel is reused if the
        source, all headers that it includes, `defines`, `options`, `constants`, the device's architecture, NVRTC and
        cuda_tma are the same. The function searches the source text for headers. The function does not keep a source
        that names the file of an include by a macro.
    logs : object with a ``write`` method, optional
        Destination of the compiler's warnings and remarks, such as ``sys.stderr``, also for a kernel from disk. The
        argument has the meaning of ``logs`` in cuda.core's ``Program.compile``. If the source does not compile, the
        error contains the warnings and remarks.
    watchdog_ms : int, optional
        The longest duration of a wait in cuda_tma's headers. Choose a value above the duration of the kernel's normal
        run. A longer wait ends, and :func:`synchronize` reports the waiting threads and the barrier. Waits of other
        headers, and loops around ``try_wait``, have no deadline. With None, the kernel contains no code of the
        watchdog.

    Returns
    -------
    cuda.core.Kernel

    Raises
    ------
    CompileError
        If the source does not compile (the error contains the line and the compiler's log), or has no such kernel.
    ValueError
        If `watchdog_ms` is not a valid number of milliseconds, or if `defines` contains the watchdog's macro.
    RuntimeError
        If there is no NVIDIA driver, or no NVRTC.

    Warns
    -----
    RuntimeWarning
        If the kernel cannot be kept, with the reason.

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
    # The limit on shared memory is set before the first launch, because kernel.occupancy uses it.
    if compiled.dynamic_shared_bytes:
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
        raise ValueError(f"watchdog_ms={watchdog_ms!r}; pass milliseconds, 1 to {_LONGEST_MS}")
    if defines and _DEADLINE in defines:
        raise ValueError(
            f"watchdog_ms={watchdog_ms} and defines[{_DEADLINE!r}]={defines[_DEADLINE]!r} set the same macro; pass "
            "only watchdog_ms"
        )
    return {**(defines or {}), _DEADLINE: milliseconds}


def _current_target() -> str:
    try:
        major, minor = Device().compute_capability
    except Exception:
        require_driver()  # Without a driver, require_driver() raises an error with a remedy.
        raise
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
