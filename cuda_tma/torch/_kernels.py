"""The kernel of an operator, which is a compiled kernel, or a function that compiles a kernel for each device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any

from .._compile.kept import kept_or_compiled
from .._compile.nvrtc import Request, request
from .._errors import CompileError
from ..kernel_parameters import KernelParameter, KernelParameters, parameters_of

__all__ = ["Compile", "Known", "KnownKernels", "described"]

Compile = Callable[..., Any]  # Compile is the type of cuda_tma.compile, and of the compile method of a simulated GPU.
_NUMBERS = ("integer", "float", "bool")
_TARGETS = ("compute_90a", "compute_100a", "compute_120a")


@dataclass(frozen=True, slots=True)
class Known:
    """A kernel with the facts that each launch needs.

    Attributes
    ----------
    given : object
        The user's kernel or function. The object is the key of this value, and must exist as long as this value exists.
    kernel : object
        The compiled kernel.
    parameters : KernelParameters
    count : int
        The number of the parameters.
    pointers : tuple of int
        The positions of the parameters that are pointers.
    tensors : tuple of int
        The positions of the parameters except numbers.
    """

    given: Any
    kernel: Any
    parameters: KernelParameters
    count: int
    pointers: tuple[int, ...]
    tensors: tuple[int, ...]


class KnownKernels:
    """The kernels of one device, each of which is compiled once.

    Parameters
    ----------
    compile : callable
        The function that the object passes to each function that compiles a kernel.
    """

    def __init__(self, compile: Compile):
        self._compile = compile
        self._known: dict[int, Known] = {}
        self._lock = Lock()

    def __getitem__(self, given: Any) -> Known:
        """Return the kernel. Compile the kernel on first use."""
        known = self._known.get(id(given))
        if known is not None:
            return known
        with self._lock:
            return self._known.get(id(given)) or self._add(given)

    def _add(self, given: Any) -> Known:
        kernel = given(self._compile) if callable(given) else given
        parameters = parameters_of(kernel)
        pointers = tuple(index for index, each in enumerate(parameters) if each.type == "pointer")
        tensors = tuple(index for index, each in enumerate(parameters) if each.type not in _NUMBERS)
        known = Known(given, kernel, parameters, len(parameters), pointers, tensors)
        return self._known.setdefault(id(given), known)


def described(given: Any) -> KernelParameters:
    """Return the parameters of a kernel. If a function compiles the kernel, the call needs no driver.

    Raises
    ------
    CompileError
        If the source does not compile for any GPU generation.
    """
    if not callable(given):
        return parameters_of(given)
    parameters: KernelParameters = given(_describe)
    return parameters


def _describe(
    source: Any,
    name: str,
    *,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] | None = None,
    constants: Mapping[str, str] | None = None,
    **_: Any,
) -> KernelParameters:
    """Return the parameters, without offsets, in place of a kernel.

    This function has the same signature as ``compile``.
    """
    asked = request(source, name, target=_TARGETS[0], defines=defines, options=options, constants=constants)
    compiled = _compiled(asked)
    types, names = compiled.types or (), compiled.parameter_names
    parameters = tuple(KernelParameter(each, of, 0, 0) for each, of in zip(names, types, strict=True))
    return KernelParameters(
        compiled.name, parameters, 0, compiled.dynamic_shared_bytes, MappingProxyType(dict(compiled.constants))
    )


def _compiled(asked: Request) -> Any:
    """Compile the kernel for the first generation that accepts the source."""
    first: CompileError | None = None
    for target in _TARGETS:
        options = tuple(each.replace(_TARGETS[0], target) for each in asked.options)
        try:
            return kept_or_compiled(asked._replace(target=target, options=options))
        except CompileError as error:
            first = first or error
    assert first is not None
    raise first
