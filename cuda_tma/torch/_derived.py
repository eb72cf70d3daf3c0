"""The function of an operator of one kernel, which is derived from the kernel's parameters.

A user could also write and decorate this function. The fake function omits ``config`` and ``values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import torch

from .._given import shown
from ..kernel_parameters import KernelParameters
from ._checks import check
from ._kernels import described
from ._outputs import Maker, maker

__all__ = ["Derived", "derived"]

_ANNOTATIONS = {"integer": "int", "float": "float", "bool": "bool", "pointer": "Tensor"}
_LAUNCH = "launch"  # A function with the parameter `launch` receives the launcher as this argument.
_PREFIXES = ("_check", "_config", "_kernel", "_make_", "_may_", "_value_")  # names in the generated function
_NAME = "operator"  # Tracebacks show the generated function under the name `operator`.


@dataclass(frozen=True)
class Derived:
    """The real and the fake function of an operator.

    Attributes
    ----------
    real : callable
        The function that creates the outputs and launches the kernel.
    fake : callable
        The function that creates the outputs and checks the arguments.
    """

    real: Callable[..., Any]
    fake: Callable[..., Any]


@dataclass(frozen=True)
class _Parts:
    """The user's arguments, by the names of the kernel's parameters."""

    name: str
    kernel: Any
    parameters: KernelParameters
    config: Any
    outputs: Mapping[str, Maker]
    workspace: Mapping[str, Maker]
    values: Mapping[str, Maker]
    mutated: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """Return the parameters that callers of the operator pass."""
        made = {*self.outputs, *self.workspace, *self.values}
        return [each.name for each in self.parameters if each.name not in made]


def derived(
    name: str, kernel: Any, config: Any, outputs: Any, workspace: Any, values: Any, mutated: tuple[str, ...]
) -> Derived:
    """Return the functions of an operator of one kernel.

    Raises
    ------
    TypeError, ValueError
        If a name does not belong to a parameter, or if a parameter cannot be an argument of an operator.
    """
    parameters = _described(name, kernel)
    given = {"outputs": outputs, "workspace": workspace, "values": values}
    for kind, each in given.items():
        if not isinstance(each, Mapping):
            raise TypeError(f"{name}: {kind} is {each!r}. Remedy: pass a dict, such as {{'y': like('x')}}")
    _check_names(name, parameters, {**given, "mutates_args": dict.fromkeys(mutated)})
    made = {each for names in given.values() for each in names}
    known = [each.name for each in parameters if each.name not in made]
    makers: dict[str, dict[str, Maker]] = {}
    # The outputs come first, because a workspace may depend on an output, and a value may depend on both.
    for kind, each in given.items():
        extra = (_LAUNCH,) if kind == "values" else ()
        makers[kind] = {n: maker(f"{name}: {kind}[{n!r}]", f, (*known, *extra)) for n, f in each.items()}
        known += [*each] if kind != "values" else []
    found = maker(f"{name}: config", config, (*known, _LAUNCH)) if callable(config) else config
    parts = _Parts(name, kernel, parameters, found, **makers, mutated=mutated)
    _check_types(parts)
    return Derived(_function(parts, is_fake=False), _function(parts, is_fake=True))


def _described(name: str, kernel: Any) -> KernelParameters:
    if isinstance(kernel, (str, bytes, int)):
        raise TypeError(f"{name}: kernel is {shown(kernel)}. Remedy: pass a kernel of cuda_tma.compile, or a function")
    found = described(kernel)
    if not isinstance(found, KernelParameters):
        raise TypeError(f"{name}: the function returned {shown(found)}. Remedy: return the kernel of its `compile`")
    return found


def _check_names(name: str, parameters: KernelParameters, given: Mapping[str, Iterable[str]]) -> None:
    names = [each.name for each in parameters]
    if not all(names):
        raise TypeError(
            f"{name}: the parameter names of kernel {parameters.kernel} are unknown. Remedy: compile the kernel with "
            "cuda_tma.compile, or decorate a function of `launch`"
        )
    for one in names:
        if iskeyword(one) or one == _LAUNCH or one.startswith(_PREFIXES):
            raise ValueError(
                f"{name}: parameter {one!r} of kernel {parameters.kernel} cannot be the name of an argument. Remedy: "
                f"rename the parameter, or decorate a function of `launch`"
            )
    seen: dict[str, str] = {}
    for kind, each in given.items():
        for one in each:
            if one not in names:
                raise ValueError(
                    f"{name}: {kind} has {one!r}, which is not a parameter of the kernel. Remedy: use one of "
                    f"{', '.join(names)}"
                )
            if one in seen:
                raise ValueError(
                    f"{name}: {one!r} is both in {seen[one]} and in {kind}. Remedy: remove it from one of them"
                )
            seen[one] = kind
    if not given["outputs"] and not given["mutates_args"]:
        raise ValueError(f"{name} has neither outputs nor mutates_args, so it has no effect. Remedy: pass one of them")


def _check_types(parts: _Parts) -> None:
    for each in (*parts.outputs, *parts.workspace):
        if parts.parameters[each].type in ("integer", "float", "bool"):
            raise TypeError(
                f"{parts.name}: parameter {each!r} of kernel {parts.parameters.kernel} is "
                f"{parts.parameters[each].type}, not a tensor. Remedy: values={{{each!r}: function of the arguments}}"
            )
    for each in parts.arguments:
        if _annotation(parts, each) is None:
            of = parts.parameters[each].type
            raise TypeError(
                f"{parts.name}: parameter {each!r} of kernel {parts.parameters.kernel} is {of or 'of another type'}, "
                f"which an operator's argument cannot be. Remedy: values={{{each!r}: function of the arguments}}"
            )


def _annotation(parts: _Parts, name: str) -> str | None:
    of = parts.parameters[name].type
    if isinstance(of, str):
        return _ANNOTATIONS[of]
    return "Tensor" if getattr(of, "mode", None) == "tiled" else None


def _function(parts: _Parts, *, is_fake: bool) -> Callable[..., Any]:
    """Generate the text of the function and execute it, as the module dataclasses does.

    The text avoids a loop over parameters in each call.
    """
    scope: dict[str, Any] = {"Tensor": torch.Tensor, "_kernel": parts.kernel, "_config": parts.config}
    scope["_may_have_elements"] = _may_have_elements
    of_arguments = [parts.parameters[each] for each in parts.arguments]
    scope["_check"] = lambda *arguments: check(parts.name, of_arguments, arguments)
    checked = f"_check({', '.join(parts.arguments)})"
    body = _body(parts, scope, checked, is_fake)
    if is_fake:
        lines = [checked, *body]
    else:  # The check runs only after an error, because it takes time.
        lines = ["try:", *(f"    {line}" for line in body), "except Exception:", f"    {checked}", "    raise"]
    text = "\n    ".join([_head(parts), *lines])
    exec(compile(text, f"<{parts.name}>", "exec"), scope)
    function: Callable[..., Any] = scope[_NAME]
    return function


def _body(parts: _Parts, scope: dict[str, Any], checked: str, is_fake: bool) -> list[str]:
    """Return the lines that create tensors, launch the kernel and return the outputs.

    Add the functions that the lines call to the scope.
    """

    def call(place: str, one: Maker) -> str:
        scope[place] = one.function
        return f"{place}({', '.join([*one.names, *(f'{each}={each}' for each in one.keywords)])})"

    tensors = {**parts.outputs, **parts.workspace}
    lines = [f"{name} = {call(f'_make_{name}', one)}" for name, one in tensors.items()]
    values = {name: "None" if is_fake else call(f"_value_{name}", one) for name, one in parts.values.items()}
    config = "None" if is_fake else "_config"
    if isinstance(parts.config, Maker) and not is_fake:
        config = call("_config", parts.config)
    arguments = ", ".join(values.get(each.name, each.name) for each in parts.parameters)
    written = [*parts.outputs, *parts.mutated]
    has_elements = (
        f"_may_have_elements({', '.join(written)})" if is_fake else " or ".join(f"{each}.numel()" for each in written)
    )
    lines.append(f"if {has_elements}:")
    lines.append(f"    {_LAUNCH}({config}, _kernel, {arguments})")
    if not is_fake:  # Without a launch, no other code checks the arguments.
        lines += ["else:", f"    {checked}"]
    lines.append(f"return {', '.join(parts.outputs) or None}")
    return lines


def _head(parts: _Parts) -> str:
    arguments = [f"{each}: {_annotation(parts, each)}" for each in parts.arguments]
    count = len(parts.outputs)
    returned = "None" if not count else "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    return f"def {_NAME}({', '.join([_LAUNCH, *arguments])}) -> {returned}:"


def _may_have_elements(*tensors: torch.Tensor) -> bool:
    """Return whether there may be elements to write. The check adds no guard on symbolic sizes."""
    return not all(any(isinstance(extent, int) and extent == 0 for extent in each.shape) for each in tensors)
