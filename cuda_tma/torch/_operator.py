"""The function operator(), which defines an operator of torch from kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .._given import shown
from ._define import Definition, define
from ._derived import derived

__all__ = ["operator"]


def operator(
    name: str,
    kernel: Any = None,
    *,
    config: Any = None,
    outputs: Mapping[str, Any] | None = None,
    workspace: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    mutates_args: Iterable[str] = (),
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
    simulator: Any = None,
) -> Any:
    """Define an operator of torch from a kernel. Without `kernel`, decorate a function that launches kernels.

    The operator works in eager mode, under ``torch.compile`` and in ``torch.export``. Kernels with CUDA tensors run on
    the device of the tensors, on torch's current stream.

    Parameters
    ----------
    name : str
        The name with a namespace, such as ``"mylib::scale"``. A second definition of a name replaces the first, also
        for code that holds the first operator.
    kernel : Kernel or callable, optional
        A kernel of :func:`cuda_tma.compile`, or a function of ``compile`` that returns a kernel. The function runs once
        for each device, at the first call on the device. The operator's arguments are the kernel's parameters in order:
        tensors for typed maps and pointers, and numbers.
    config : LaunchConfig, mapping of its fields, or callable
        The configuration. A function receives arguments, outputs and workspaces by their names, and ``launch`` (a
        :class:`Launch`).
    outputs : mapping, optional
        The parameters that the operator allocates and returns. The value of a parameter is :func:`like`, or a function
        that creates the tensor from arguments, which it receives by their names.
    workspace : mapping, optional
        The parameters for tensors that the call frees, as in `outputs`.
    values : mapping, optional
        The parameters that functions compute from the arguments, as in `config`.
    mutates_args : iterable of str, optional
        The arguments to which the kernel writes.
    backward, setup_context : callable, optional
        The functions of the gradient, as for :func:`torch.library.register_autograd`.
    simulator : simulate.Device, optional
        The simulated device for CPU tensors, which raises findings of the sanitizer. Without it, CPU tensors are
        refused.

    Returns
    -------
    torch.ops.OpOverload
        The operator, or a decorator that returns it. The decorated function takes a :class:`Launch` as ``launch``
        before the operator's arguments, which have annotations. The function creates tensors with torch's functions,
        and returns the outputs.

    Raises
    ------
    TypeError, ValueError
        If a name does not belong to a parameter, or if a parameter cannot be an argument of an operator. The error
        leaves an earlier operator of the same name as it was.

    Examples
    --------
    ::

        scale = cuda_tma.torch.operator(
            "mylib::scale", kernel, outputs={"y": like("x")}, config=lambda x: {"grid": x.shape[0] // 64, "block": 64}
        )
        y = scale(x, 2.0)
    """
    _check_registered(name, mutates_args, backward, setup_context, simulator)
    registered = tuple(mutates_args), backward, setup_context, simulator
    if kernel is not None:
        made = derived(name, kernel, config, outputs or {}, workspace or {}, values or {}, registered[0])
        return define(Definition(name, made.real, made.fake, *registered))
    given = {"config": config, "outputs": outputs, "workspace": workspace, "values": values}
    for each, value in given.items():
        if value is not None:
            raise TypeError(f"{name}: {each} was passed without a kernel. Remedy: pass the kernel, or leave {each} out")
    return lambda function: define(Definition(name, function, function, *registered))


def _check_registered(name: str, mutates_args: Any, backward: Any, setup_context: Any, simulator: Any) -> None:
    if isinstance(mutates_args, str):
        raise TypeError(f"{name}: mutates_args is {mutates_args!r}. Remedy: pass a list of names")
    for keyword, function in {"backward": backward, "setup_context": setup_context}.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name}: {keyword} is {shown(function)}. Remedy: pass a function")
    if setup_context is not None and backward is None:
        raise TypeError(f"{name}: setup_context was passed without backward. Remedy: pass both")
    if simulator is not None and not hasattr(simulator, "compile"):
        raise TypeError(f"{name}: simulator is {shown(simulator)}. Remedy: pass cuda_tma.simulate.Device()")
