"""A simulated GPU, which compiles kernels for a GPU and runs their PTX on the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._compile.nvrtc import request
from ..._compile.nvrtc import run as run_compiler
from ..._compile.parameter_types import described_types
from ..._map_type import MapType
from .._config import Config
from .._kernel import Kernel, kernel_of
from .._machine.deadline import Deadline, seconds_of
from .._machine.decode import decode
from .._machine.machine import MAX_STEPS, Settings
from .._machine.run import Running, run, run_overlapping
from .._memory.array_memory import ArrayMemory
from .._memory.global_memory import GlobalMemory
from .._ptx import read
from .._ptx.text import text_of
from .._report import Report, suppressed
from .._sanitize import Sanitizer
from .._suppression import Suppression
from .._tensor_map import TensorMap, tensor_map_of
from .._trace import traced
from .arguments import parameter_block
from .kept_modules import keep, kept
from .module import entry_of, load_variables
from .refusals import (
    check_headers,
    check_kernel,
    check_settings,
    count,
    flag,
    schedule_count,
    since_tma,
    suppressions_of,
)
from .replay import Replay
from .schedules import Schedule, begin_early, explored, rows, schedules_of, until_error

__all__ = ["Device"]


class Device:
    """A simulated GPU, which needs no driver.

    Parameters
    ----------
    compute_capability : (int, int) or str
        The target of kernels, and the device for which tensor maps are checked. The first compute capability with TMA
        is (9, 0).
    multiprocessor_count : int
        The number of multiprocessors, which limits the number of CTAs that run at the same time.
    sanitize : bool
        Whether to search launches for races and missing proxy fences. The search takes time.
    strict : bool
        Whether disputed findings are errors instead of advice.
    schedules : int
        The number of orders of asynchronous operations and threads under which each launch runs. The orders are early,
        late, and random orders with fixed seeds. The first order determines the memory after the launch. The report
        contains the findings of all orders.
    suppressions : sequence of Suppression or str
        Suppressions of findings, with reasons; a suppression as text has the form ``kind:place:reason``.
    time_limit : float, optional
        The limit in seconds for a launch under all its schedules, and for the loading of PTX; None for no limit. A
        launch that reaches the limit returns a report with the reason in :attr:`Report.unfinished`. Loading that
        reaches the limit raises :class:`TimeLimitReached`. The limit does not apply to NVRTC.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type, or exceeds its limits.

    Examples
    --------
    >>> import numpy as np
    >>> gpu = Device()
    >>> source = 'extern "C" __global__ void twice(int* values) { values[threadIdx.x] *= 2; }'
    >>> values = np.arange(4, dtype=np.int32)
    >>> report = gpu.launch(Config(grid=1, block=4), gpu.compile(source, "twice"), values)
    >>> report.findings, values
    ((), array([0, 2, 4, 6], dtype=int32))
    """

    def __init__(
        self,
        compute_capability: Any = (9, 0),
        *,
        multiprocessor_count: int = 8,
        sanitize: bool = True,
        strict: bool = False,
        schedules: int = 1,
        suppressions: Sequence[Suppression | str] = (),
        time_limit: float | None = None,
    ):
        self.compute_capability = since_tma(compute_capability)
        self.multiprocessor_count = count("multiprocessor_count", multiprocessor_count)
        self.sanitize, self.strict = flag("sanitize", sanitize), flag("strict", strict)
        self.schedules, self.suppressions = schedule_count(schedules), suppressions_of(suppressions)
        self.time_limit = seconds_of(time_limit)
        self._memory = ArrayMemory()

    @property
    def target(self) -> str:
        """The target for which kernels are compiled, such as ``"compute_90a"``."""
        major, minor = self.compute_capability
        return f"compute_{major}{minor}a"

    def compile(
        self,
        source: str | os.PathLike[str],
        name: str,
        *,
        defines: Mapping[str, object] | None = None,
        options: Sequence[str] | None = None,
        constants: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Compile a kernel with NVRTC.

        Parameters
        ----------
        source : str or path
            The CUDA C++ source, or the file that contains it.
        name : str
            The name of the kernel in C++.
        defines : mapping, optional
            Macros and their values.
        options : sequence of str, optional
            Options of NVRTC.
        constants : mapping of str to str, optional
            C++ expressions with integer values. The `parameters` of the kernel contain their values.

        Returns
        -------
        Kernel

        Raises
        ------
        CompileError
            If NVRTC or a header of cuda_tma refuses the source.
        UnsupportedInstruction
            If the PTX contains an unsupported instruction.
        """
        asked = request(source, name, target=self.target, defines=defines, options=options, constants=constants)
        compiled = run_compiler(asked)
        check_headers(compiled.ptx, asked.source, asked.file, name, self.target)
        known = compiled.parameter_names, compiled.dynamic_shared_bytes, compiled.constants, asked.source, name
        return self._kernel(compiled.ptx, compiled.lowered_name, compiled.signature, *known)

    def load(self, ptx: str | os.PathLike[str], name: str) -> Kernel:
        """Load a kernel from the PTX of any compiler.

        Parameters
        ----------
        ptx : str or path
            The PTX text, or the file that contains it.
        name : str
            The name of the kernel in the PTX. The name in C++ is also accepted if only one kernel has this name.

        Returns
        -------
        Kernel

        Raises
        ------
        ParseError, UnsupportedInstruction, TimeLimitReached
            If the text is not PTX, contains an unsupported instruction, or takes too long to load.
        CompileError
            If a header of cuda_tma refuses the kernel, as the assembler of PTX would.
        ValueError
            If the PTX does not contain a kernel with this name.
        """
        text = text_of(ptx)
        check_headers(text, "", "", name, self.target)
        return self._kernel(text, name, "")

    def _kernel(self, ptx: str, name: str, table: str, *known: Any) -> Kernel:
        """Return a kernel with its own variables.

        `table` is the name of the variable that contains the types of the kernel's parameters.
        """
        check = partial(Deadline(self.time_limit).check, "the loading of the PTX")
        found = kept(ptx, name, check)
        module = read(ptx, check) if found is None else found[0]
        entry = entry_of(module, name) if found is None else found[1]
        variables = load_variables(module, self._memory)
        try:
            program = decode(module, entry, variables, check)
            if found is None:
                keep(ptx, name, module, entry, program.codes)
            kernel = kernel_of(ptx, program, described_types(ptx, entry, table), *known)
        except BaseException:
            self._memory.unload(variables.values())
            raise
        self._memory.unload_with(kernel, variables.values())
        return kernel

    def create_tensor_map(self, tensor: Any, options: Any = None, **keywords: Any) -> TensorMap:
        """Return a tensor map of a NumPy array or CPU tensor, and give the array a simulated address if necessary.

        Parameters
        ----------
        tensor : array
        options, **keywords
            As for :func:`cuda_tma.create_tensor_map`.

        Returns
        -------
        TensorMap

        Raises
        ------
        TensorMapError
            As for :func:`cuda_tma.create_tensor_map`.
        """
        return tensor_map_of(tensor, self.address, self.compute_capability, options, keywords)

    def address(self, array: Any) -> int:
        """Return the simulated address of the first element of an array, for example to fill a pointer in a struct.

        Parameters
        ----------
        array : array
            A NumPy array or a CPU tensor. The simulator uses the memory of the array in place. A view receives an
            address inside the memory of the array that owns the memory. The address is valid until the owner is
            deleted, or a resize moves its memory.

        Returns
        -------
        int
            The address, a multiple of 512 for an array that owns its memory.
        """
        return self._memory.address(array)

    def variable(self, kernel: Kernel, name: str) -> np.ndarray:
        """Return the content of a ``__device__`` or ``__constant__`` variable, for example to write a map to it.

        Parameters
        ----------
        kernel : Kernel
            The kernel; each kernel has its own variables.
        name : str
            The name of the variable in C++ or in PTX.

        Returns
        -------
        numpy.ndarray of uint8
            A view of the variable, readable and writeable.

        Raises
        ------
        KeyError
            If the variable does not exist; the compiler omits variables that no kernel uses.

        Examples
        --------
        >>> gpu = Device()
        >>> source = '__constant__ int n; extern "C" __global__ void get(int* out) { *out = n; }'
        >>> kernel, out = gpu.compile(source, "get"), np.zeros(1, np.int32)
        >>> gpu.variable(kernel, "n").view(np.int32)[:] = 5
        >>> gpu.launch(Config(1, 1), kernel, out).findings, out
        ((), array([5], dtype=int32))
        """
        address, size = kernel.program.variable(name)
        segment = self._memory.find(address)
        if segment is None:
            raise KeyError(f"{kernel.name} is a kernel of another Device; load it with this Device")
        return segment.bytes[address - segment.start :][:size]

    def launch(
        self,
        config: Any,
        kernel: Kernel,
        *arguments: Any,
        order: str = "early",
        seed: int = 0,
        max_steps: int = MAX_STEPS,
        trace: bool = False,
    ) -> Report:
        """Run a kernel to its end, and report a finding for a kernel that would never end.

        Launches from several threads of the host run in sequence.

        Parameters
        ----------
        config : Config or cuda.core's LaunchConfig
        kernel : Kernel
        *arguments
            One argument for each parameter, as for :func:`cuda_tma.launch`: an array, which the kernel uses in place, a
            tensor map (or an array for a typed map), a number, an address as an int, or bytes for a struct.
        order : {"early", "late", "random"}
            The time at which asynchronous copies take effect; all three are legal for every kernel.
        seed : int
            The seed of the random order; the same seed leads to the same run.
        max_steps : int
            The largest number of steps that the scheduler executes. A kernel that reaches `max_steps` has a finding of
            kind ``"no-progress"``. The simulator finds a loop that changes no state earlier.
        trace : bool
            Whether the report contains a timeline of warps, copies and mbarriers. See :meth:`Report.timeline`.

        Returns
        -------
        Report

        Raises
        ------
        TypeError, OverflowError, ValueError, TensorMapError
            If :func:`cuda_tma.launch` refuses the launch, with the same message. Faults of the kernel are findings.
        """
        check_settings(order, seed, max_steps)
        config = Config.of(config)
        schedules, deadline = schedules_of(order, seed, self.schedules), Deadline(self.time_limit)
        with self._memory.launch() as address:
            block = self._block(kernel, arguments, address)

            def under(schedule: Schedule, memory: GlobalMemory) -> tuple[Report, ...]:
                settings = self._settings(schedule, max_steps, deadline)
                replay = Replay(kernel, config, block, memory, settings)
                observer = Sanitizer(self.strict, replay=replay) if self.sanitize else None
                runs = traced if trace and schedule == schedules[0] else run
                return (runs(kernel, config, block, memory, settings, observer),)

            (report,) = self._finished(explored(under, self._memory, schedules))
        return report

    def _settings(self, schedule: Schedule, max_steps: int, deadline: Deadline) -> Settings:
        return Settings(self.multiprocessor_count, *schedule, max_steps, deadline=deadline, strict=self.strict)

    def _block(self, kernel: Kernel, arguments: Sequence[Any], address: Callable[[Any], int]) -> np.ndarray:
        check_kernel(kernel)

        def typed_map(array: Any, of_type: MapType) -> TensorMap:
            return tensor_map_of(array, address, self.compute_capability, of_type.options, {})

        return parameter_block(kernel, arguments, address, typed_map)

    def _finished(self, reports: Iterable[Report]) -> tuple[Report, ...]:
        """Return the reports of launches after their suppressions are applied; each launch calls this method once."""
        return tuple(suppressed(report, self.suppressions) for report in reports)

    def launch_all(
        self, launches: Iterable[Sequence[Any]], *, order: str = "early", seed: int = 0, max_steps: int = MAX_STEPS
    ) -> tuple[Report, ...]:
        """Run kernels in sequence, like launches on one stream.

        Each kernel begins after the end of the preceding kernel. With ``programmatic_stream_serialization`` in its
        configuration, a kernel may begin earlier: when every CTA of the preceding kernel has executed
        ``griddepcontrol.launch_dependents`` or ended. In the order ``"late"``, and sometimes in the order ``"random"``,
        the kernel begins early and runs to its ``griddepcontrol.wait``. In every order, an access before
        ``griddepcontrol.wait`` races with a conflicting access of the preceding kernel.

        Parameters
        ----------
        launches : iterable of ``(config, kernel, *arguments)``
        order, seed, max_steps
            As for :meth:`launch`.

        Returns
        -------
        tuple of Report
            One report for each launch. Launches after an error, or after the time limit, do not run.
        """
        check_settings(order, seed, max_steps)
        reports: list[Report] = []
        for row in rows(launches):
            if len(row) == 1:
                reports.append(self.launch(*row[0], order=order, seed=seed, max_steps=max_steps))
            else:
                reports += self._launch_row(row, schedules_of(order, seed, self.schedules), max_steps)
            if reports[-1].errors or reports[-1].unfinished:
                break
        return tuple(reports)

    def _launch_row(self, row: list[Sequence[Any]], schedules: list[Schedule], max_steps: int) -> tuple[Report, ...]:
        """Run launches, each of which may begin before the end of the preceding launch."""
        deadline = Deadline(self.time_limit)
        with self._memory.launch() as address:
            blocks = [self._block(kernel, arguments, address) for _, kernel, *arguments in row]

            def under(schedule: Schedule, memory: GlobalMemory) -> tuple[Report, ...]:
                settings = self._settings(schedule, max_steps, deadline)
                launches = zip(row, blocks, begin_early(len(row), schedule), strict=True)
                running = (self._running(*each, memory, settings) for each in launches)
                return tuple(until_error(run_overlapping(running)))

            return self._finished(explored(under, self._memory, schedules))

    def _running(
        self, launch: Sequence[Any], block: np.ndarray, begins_early: bool, memory: GlobalMemory, settings: Settings
    ) -> Running:
        config, kernel = launch[:2]
        observer = Sanitizer(self.strict, is_in_row=True) if self.sanitize else None
        return Running(kernel, Config.of(config), block, memory, settings, observer, begins_early)
