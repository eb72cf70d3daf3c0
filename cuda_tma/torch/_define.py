"""The registration of an operator with the dispatcher of torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import torch
from torch.autograd.graph import increment_version

from ._launches import CudaLaunch, FakeLaunch, SimulatedLaunch

__all__ = ["Definition", "define"]

# The second tag requires that compilers keep the strides of the arguments.
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
_Library: Any = torch.library.Library  # The module torch.library has no annotations for the class Library.
# The dictionary keeps each library alive, because an operator exists only as long as its library.
_libraries: dict[str, Any] = {}
_lock = Lock()


class Definition(NamedTuple):
    """The definition of an operator for torch.

    Attributes
    ----------
    name : str
        The name of the operator with its namespace, such as ``"mylib::scale"``.
    real, fake : callable
        Functions of ``launch`` and of the operator's arguments.
    mutates_args : sequence of str
    backward, setup_context : callable or None
        The arguments of torch.library.register_autograd.
    simulator : simulate.Device or None
        The device that runs the kernels for CPU tensors.
    """

    name: str
    real: Callable[..., Any]
    fake: Callable[..., Any]
    mutates_args: Sequence[str]
    backward: Callable[..., Any] | None
    setup_context: Callable[..., Any] | None
    simulator: Any


def define(definition: Definition) -> Any:
    """Define the operator. Replace an operator that this function defined earlier under the same name."""
    namespace, _, short = definition.name.partition("::")
    if not (namespace.isidentifier() and short.isidentifier()):
        raise ValueError(
            f"{definition.name!r} is not the name of an operator. Remedy: pass a namespace and a name, such as "
            '"mylib::scale"'
        )
    schema = torch.library.infer_schema(
        _without_launch(definition), mutates_args=tuple(definition.mutates_args), op_name=short
    )
    with _lock:
        if definition.name in _libraries:
            _libraries.pop(definition.name)._destroy()
        library = _libraries[definition.name] = _Library(namespace, "FRAGMENT")
        library.define(schema, tags=_TAGS)
        overload = getattr(getattr(torch.ops, namespace), short).default
        _register(definition, library, short, overload)
    return overload


def _without_launch(definition: Definition) -> Callable[..., Any]:
    """Return the function without the parameter ``launch``, because torch takes the arguments from the signature."""
    function = definition.real
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    if not isinstance(function, FunctionType) or first.name != "launch":
        raise TypeError(f"{definition.name}: the function takes {first.name!r} first. Remedy: name it launch")
    seen = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    seen.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    return seen


def _register(definition: Definition, library: Any, short: str, overload: Any) -> None:
    name = definition.name
    library.impl(short, partial(definition.real, CudaLaunch(name)), "CUDA")
    library.impl(short, partial(definition.real, SimulatedLaunch(name, definition.simulator)), "CPU")
    torch.library.register_fake(name, partial(definition.fake, FakeLaunch(name)), lib=library)
    torch.library.register_vmap(name, partial(_refuse_vmap, name), lib=library)
    if definition.mutates_args:
        mutated = [i for i, each in enumerate(overload._schema.arguments) if each.name in definition.mutates_args]
        library.impl(short, partial(_bump_versions, overload, mutated), "ADInplaceOrView", with_keyset=True)
    if definition.backward is not None:
        torch.library.register_autograd(name, definition.backward, setup_context=definition.setup_context, lib=library)


def _bump_versions(overload: Any, mutated: Sequence[int], keyset: Any, *arguments: Any, **named: Any) -> Any:
    """Increment the versions of mutated tensors, as torch's own operators do, so that autograd detects the change."""
    names = [each.name for each in overload._schema.arguments]
    for index in mutated:
        increment_version(arguments[index] if index < len(arguments) else named[names[index]])
    return overload.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *arguments, **named)


def _refuse_vmap(name: str, *_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(
        f"{name} was called under vmap, but a kernel has no rule for an additional dimension. Remedy: call the "
        "operator for each element, or write a kernel whose tensors have the batch as a dimension"
    )
