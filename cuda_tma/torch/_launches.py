"""Launchers of an operator's kernels, on a GPU, on a simulated GPU, or with fake tensors on no device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

import cuda_tma

from .._launch.launch import launch as unpatched_launch
from ..kernel_parameters import KernelParameters
from ._checks import check, check_count
from ._kernels import Known, KnownKernels, described

__all__ = ["CudaLaunch", "FakeLaunch", "Launch", "SimulatedLaunch"]

# Each key consists of a device and the handle of a stream, of which torch creates at most 65 for a device.
_streams: dict[tuple[int, int], Any] = {}
_REFUSED = (TypeError, ValueError, OverflowError)


class Launch(Protocol):
    """The first argument of a function that :func:`operator` decorates, which launches kernels.

    Attributes
    ----------
    multiprocessor_count : int
        The number of multiprocessors of the call's device. A configuration that needs this number must be a function,
        which does not run with fake tensors.
    """

    multiprocessor_count: int

    def __call__(self, config: Any, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel on the device of its tensors, on torch's current stream.

        Parameters
        ----------
        config : LaunchConfig, mapping of its fields, or function without parameters that returns one
            The configuration. With fake tensors, a function is not called, so that sizes remain symbolic.
        kernel : Kernel or callable
            A kernel, or a function of ``compile`` that returns a kernel. The function is called once for each device.
        *arguments
            One argument for each parameter of the kernel, as in :func:`cuda_tma.launch`.
        """

    def parameters_of(self, kernel: Any) -> KernelParameters:
        """Return the parameters of a kernel, and the constants with which the kernel was compiled."""


class FakeLaunch:
    """A launcher that only checks the arguments of launches, for fake tensors.

    Parameters
    ----------
    operator : str
        The operator's name with its namespace.
    """

    multiprocessor_count = 1

    def __init__(self, operator: str):
        self._operator = operator
        self._described: dict[int, tuple[Any, KernelParameters]] = {}

    def __call__(self, config: Any, kernel: Any, *arguments: Any) -> None:
        parameters = self.parameters_of(kernel)
        check_count(self._operator, parameters, arguments)
        check(self._operator, parameters, arguments)

    def parameters_of(self, kernel: Any) -> KernelParameters:
        """Return the parameters of the kernel, without compiling the kernel for a device."""
        if id(kernel) not in self._described:
            self._described[id(kernel)] = kernel, described(kernel)
        return self._described[id(kernel)][1]


class SimulatedLaunch:
    """A launcher on a simulated GPU (default: the GPU of ``cuda-tma sanitize``, if that command runs the program).

    Parameters
    ----------
    operator : str
    simulator : simulate.Device or None
    """

    def __init__(self, operator: str, simulator: Any):
        self._operator, self._simulator = operator, simulator
        self._kernels = KnownKernels(lambda *given, **asked: self._compile(*given, **asked))

    @property
    def multiprocessor_count(self) -> int:
        """Return the number of multiprocessors of the simulated GPU."""
        if self._simulator is not None:
            return int(self._simulator.multiprocessor_count)
        return int(cuda_tma.Device().properties.multiprocessor_count)

    def __call__(self, config: Any, kernel: Any, *arguments: Any) -> None:
        self._require_gpu()
        known = self._kernels[kernel]
        check_count(self._operator, known.parameters, arguments)
        check(self._operator, known.parameters, arguments)
        config = config() if callable(config) else config
        given = [_as_numpy_reads(each) for each in arguments]
        try:
            if self._simulator is None:
                cuda_tma.launch(cuda_tma.Device().default_stream, config, known.kernel, *given)
                return
            report = self._simulator.launch(config, known.kernel, *given)
        except _REFUSED as error:
            raise RuntimeError(f"{self._operator}: {error}") from error
        report.raise_for_errors()

    def parameters_of(self, kernel: Any) -> KernelParameters:
        """Return the parameters of the kernel for the simulated GPU."""
        self._require_gpu()
        return self._kernels[kernel].parameters

    def _compile(self, *given: Any, **asked: Any) -> Any:
        return (self._simulator or cuda_tma).compile(*given, **asked)

    def _require_gpu(self) -> None:
        if self._simulator is None and cuda_tma.launch is unpatched_launch:
            raise RuntimeError(
                f"{self._operator} was called with CPU tensors, but runs on a GPU. Remedy: pass tensors of a CUDA "
                "device, or define the operator with simulator=cuda_tma.simulate.Device()"
            )


class CudaLaunch:
    """A launcher on the device of the tensors, on torch's current stream.

    Parameters
    ----------
    operator : str
    """

    def __init__(self, operator: str):
        self._operator = operator
        self._kernels: dict[int, KnownKernels] = {}
        # Each key consists of a device and the id of a kernel.
        self._known: dict[tuple[int, int], Known] = {}

    @property
    def multiprocessor_count(self) -> int:
        """Return the number of multiprocessors of the current device, on which torch calls an operator."""
        return int(torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count)

    def __call__(self, config: Any, kernel: Any, *arguments: Any) -> None:
        index = torch.cuda.current_device()
        known = self._known.get((index, id(kernel)))
        if known is None or len(arguments) != known.count:
            self._check_and_launch(config, kernel, arguments)
            return
        for position in known.tensors:
            if isinstance(each := arguments[position], torch.Tensor) and each.get_device() != index:
                self._check_and_launch(config, kernel, arguments)
                return
        for position in known.pointers:
            if isinstance(each := arguments[position], torch.Tensor) and not each.is_contiguous():
                check(self._operator, known.parameters, arguments)
        try:
            made = config() if callable(config) else config
            cuda_tma.launch(_current_stream(index), made, known.kernel, *arguments)
        except _REFUSED as error:
            check(self._operator, known.parameters, arguments)
            raise RuntimeError(f"{self._operator}: {error}") from error

    def parameters_of(self, kernel: Any) -> KernelParameters:
        """Return the parameters of the kernel for the current device."""
        return self._known_on(torch.cuda.current_device(), kernel).parameters

    def _check_and_launch(self, config: Any, kernel: Any, arguments: Sequence[Any]) -> None:
        """Launch on the device of the tensors after all checks. Refuse tensors of several devices."""
        index = _device_of(arguments)
        with torch.cuda.device(index):
            known = self._known_on(index, kernel)
            check_count(self._operator, known.parameters, arguments)
            check(self._operator, known.parameters, arguments)
            for parameter, each in zip(known.parameters, arguments, strict=True):
                if isinstance(each, torch.Tensor) and each.get_device() != index:
                    raise RuntimeError(
                        f"{self._operator}: argument {parameter.name!r} is on {each.device}, but the kernel runs on "
                        f"cuda:{index}. Remedy: pass tensor.to('cuda:{index}')"
                    )
            self(config, kernel, *arguments)

    def _known_on(self, index: int, kernel: Any) -> Known:
        """Return the kernel of a device. Compile the kernel on first use."""
        kernels = self._kernels.get(index) or self._kernels.setdefault(index, KnownKernels(_compile_on(index)))
        return self._known.setdefault((index, id(kernel)), kernels[kernel])


def _current_stream(index: int) -> Any:
    """Return torch's current stream of a device as the same object each time, which makes launches faster."""
    key = index, torch._C._cuda_getCurrentRawStream(index)
    stream = _streams.get(key)
    return stream or _streams.setdefault(key, torch.cuda.current_stream(index))


def _compile_on(index: int) -> Any:
    """Return the function ``cuda_tma.compile`` for one device."""

    def compile(*given: Any, **asked: Any) -> Any:
        cuda_tma.Device(index).set_current()
        return cuda_tma.compile(*given, **asked)

    return compile


def _device_of(arguments: Sequence[Any]) -> int:
    """Return the device of the first CUDA tensor, or else the current device."""
    for each in arguments:
        if isinstance(each, torch.Tensor) and each.is_cuda:
            return each.get_device()
    return torch.cuda.current_device()


def _as_numpy_reads(value: Any) -> Any:
    """View 8-bit floats as bytes, because NumPy has no 8-bit floating-point types."""
    is_narrow = isinstance(value, torch.Tensor) and value.dtype.itemsize == 1 and value.dtype.is_floating_point
    return value.view(torch.uint8) if is_narrow else value
