"""The registration of an operator with the dispatcher of torch."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

import torch
from torch.autograd.graph import increment_version

from ._launches import CudaLaunch, FakeLaunch, SimulatedLaunch

__all__ = ["Definition", "define"]

# The second tag requires that compilers keep the strides of the arguments.
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
_NAMESPACES_OF_TORCH = ("at", "aten", "prim", "prims", "pytorch", "torch")
_Library: Any = torch.library.Library  # The module torch.library has no annotations for the class Library.
_UNUSED_KEY = "FPGA"
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


class _Defined(NamedTuple):
    """The definition and the schema of an operator, and the library that keeps the operator alive."""

    definition: Definition
    schema: str
    library: Any


_defined: dict[str, _Defined] = {}
# The dispatcher frees an operator without a schema and a kernel, which another module could still call after a second
# definition. Therefore, each name has a kernel that stays, in a library of its own.
_anchors: dict[str, Any] = {}


def define(definition: Definition) -> Any:
    """Define the operator. Replace an operator that this function defined earlier under the same name.

    If the definition fails, the earlier operator remains.
    """
    name = definition.name
    short = _checked_name(name)
    schema = torch.library.infer_schema(
        _without_launch(definition), mutates_args=tuple(definition.mutates_args), op_name=short
    )
    if not re.search(r"\bTensor\b", schema.rpartition(" -> ")[0]):
        raise TypeError(
            f"{name} has no tensor among its arguments, by which torch chooses the device. Remedy: let the caller pass "
            "an output, and name it in mutates_args"
        )
    with _lock:
        last = _defined.pop(name, None)
        if last is not None:
            last.library._destroy()
        try:
            return _add(definition, schema)
        except BaseException:
            if last is not None:
                _add(last.definition, last.schema)
            raise


def _checked_name(name: Any) -> str:
    """Return the name without its namespace."""
    parts = name.split("::") if isinstance(name, str) else ()
    if len(parts) != 2 or not all(re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", each) for each in parts):
        raise ValueError(
            f'{name!r} is not the name of an operator. Remedy: pass a namespace and a name, such as "mylib::scale"'
        )
    namespace, short = parts
    of_torch = namespace in _NAMESPACES_OF_TORCH or not isinstance(getattr(torch.ops, namespace), ModuleType)
    if of_torch or short.startswith("__") or short in ("name", "_dir") or any(map(keyword.iskeyword, parts)):
        raise ValueError(f"torch or Python reserves {name!r}. Remedy: choose another namespace or name")
    return short


def _add(definition: Definition, schema: str) -> Any:
    """Register the operator. Remove the operator if a part of the registration fails."""
    namespace, _, short = definition.name.partition("::")
    library = _Library(namespace, "FRAGMENT")
    try:
        library.define(schema, tags=_TAGS)
        if definition.name not in _anchors:
            _anchors[definition.name] = _Library(namespace, "FRAGMENT")
            _anchors[definition.name].impl(short, torch.library.fallthrough_kernel, _UNUSED_KEY)
        overload = getattr(getattr(torch.ops, namespace), short).default
        _register(definition, library, short, overload)
    except BaseException:
        library._destroy()
        raise
    _defined[definition.name] = _Defined(definition, schema, library)
    return overload


def _without_launch(definition: Definition) -> Callable[..., Any]:
    """Return the function without the parameter ``launch``, because torch takes the arguments from the signature."""
    function = definition.real
    if not isinstance(function, FunctionType):
        raise TypeError(f"{definition.name}: {function!r} is not defined by def. Remedy: wrap it in a function")
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    if not parameters or parameters[0].name != "launch":
        first = parameters[0].name if parameters else "missing"
        raise TypeError(f"{definition.name}: the first parameter of the function is {first}. Remedy: name it launch")
    seen = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    seen.__signature__ = signature.replace(parameters=parameters[1:])  # type: ignore[attr-defined]
    return seen


def _register(definition: Definition, library: Any, short: str, overload: Any) -> None:
    name = definition.name
    names = [(i, each.name) for i, each in enumerate(overload._schema.arguments)]
    mutated = [(i, each) for i, each in names if each in definition.mutates_args]
    real, fake = definition.real, definition.fake
    simulated = partial(_without_aliases, name, partial(real, SimulatedLaunch(name, definition.simulator)))
    faked = partial(_without_aliases, name, partial(fake, FakeLaunch(name)))
    library.impl(short, _with_new_versions(mutated, partial(real, CudaLaunch(name))), "CUDA")
    library.impl(short, _with_new_versions(mutated, simulated), "CPU")
    torch.library.register_fake(name, _with_new_versions(mutated, faked), lib=library)
    library.impl(short, partial(_refuse_vmap, name), "FuncTorchBatched")
    if definition.backward is not None:
        torch.library.register_autograd(name, definition.backward, setup_context=definition.setup_context, lib=library)


def _with_new_versions(mutated: Sequence[tuple[int, str]], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that increments the versions of mutated tensors, so that autograd detects the change.

    A kernel for the key ADInplaceOrView would do the same, but calls the dispatcher a second time.
    """
    if not mutated:
        return function

    def changing(*arguments: Any, **named: Any) -> Any:
        for at, name in mutated:
            given = arguments[at] if at < len(arguments) else named.get(name)
            for each in [given] if isinstance(given, torch.Tensor) else _tensors_of([given]):
                if not each.is_inference():  # A tensor of the inference mode has no version.
                    increment_version(each)
        return function(*arguments, **named)

    return changing


def _without_aliases(name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the outputs of the function. Refuse an output in the memory of an argument or of another output."""
    outputs = function(*arguments, **named)
    storages = {each.untyped_storage()._cdata for each in _tensors_of([*arguments, *named.values()])}
    for each in _tensors_of([outputs]):
        storage = each.untyped_storage()._cdata
        if storage in storages:
            raise RuntimeError(
                f"{name} returns a tensor in the memory of an argument or of another output. Remedy: return a new "
                "tensor, such as tensor.clone(); do not return an argument of mutates_args"
            )
        storages.add(storage)
    return outputs


def _tensors_of(values: Iterable[Any]) -> list[torch.Tensor]:
    """Return the tensors among values and in their lists and tuples."""
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return [each for each in flat if isinstance(each, torch.Tensor)]


def _refuse_vmap(name: str, *_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(
        f"{name} was called under vmap, but a kernel has no rule for an additional dimension. Remedy: call the "
        "operator for each element, or write a kernel whose tensors have the batch as a dimension"
    )
