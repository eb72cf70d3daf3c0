"""Checks of the arguments of an operator, for real tensors and for fake tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx.experimental import symbolic_shapes

from .._data_type import DLPACK_DTYPES, ELEMENTS, float_dtype
from .._errors import TensorMapError
from .._given import argument_count
from .._launch.typed_map import dtype_codes
from .._map_type import MapType
from .._params_of import TensorSpec
from ..kernel_parameters import KernelParameter, KernelParameters
from ..simulate._tensor_map import tensor_map_of

__all__ = ["check", "check_count"]

_NEWEST = (12, 0)  # A GPU of compute capability 12.0 accepts every map that an earlier GPU accepts.

# Earlier releases of torch use the name has_hint for the function.
_names = ("has_guarding_hint", "has_hint")
_has_hint = next(getattr(symbolic_shapes, name) for name in _names if hasattr(symbolic_shapes, name))


def check_count(operator: str, parameters: KernelParameters, arguments: Sequence[Any]) -> None:
    """Refuse a launch whose number of arguments differs from the kernel's number of parameters.

    Raises
    ------
    RuntimeError
    """
    if len(arguments) != len(parameters):
        raise RuntimeError(argument_count(f"{operator}: kernel {parameters.kernel}", len(parameters), len(arguments)))


def check(operator: str, parameters: Iterable[KernelParameter], arguments: Sequence[Any]) -> None:
    """Refuse tensors that the kernel does not accept. The check adds no guard on symbolic sizes.

    Parameters
    ----------
    operator : str
    parameters : iterable of KernelParameter
        The kernel's parameters, one for each argument.
    arguments : sequence

    Raises
    ------
    RuntimeError
        If an argument breaks a rule. The error contains the operator, the argument, the rule and the remedy.
    """
    first: tuple[str, torch.device] | None = None
    for parameter, argument in zip(parameters, arguments, strict=True):
        if not isinstance(argument, torch.Tensor):
            continue
        place = f"{operator}: argument {parameter.name!r}"
        first = first or (parameter.name, argument.device)
        _check_device(place, argument, *first)
        if isinstance(parameter.type, MapType):
            _check_map(place, parameter.type, argument)
        elif parameter.type == "pointer":
            _check_pointer(place, argument)


def _check_device(place: str, tensor: torch.Tensor, name: str, device: torch.device) -> None:
    if tensor.device != device:
        raise RuntimeError(
            f"{place} is on {tensor.device}, but {name!r} is on {device}; all tensors of a call must be on one device. "
            f"Remedy: pass tensor.to({str(device)!r})"
        )


def _check_pointer(place: str, tensor: torch.Tensor) -> None:
    if not tensor.is_contiguous():
        raise RuntimeError(
            f"{place} has strides {tuple(tensor.stride())} for shape {tuple(tensor.shape)}; the kernel expects "
            f"a pointer, which has no strides, so the tensor must be contiguous. Remedy: pass tensor.contiguous()"
        )


def _check_map(place: str, map_type: MapType, argument: torch.Tensor) -> None:
    if map_type.mode != "tiled":
        raise RuntimeError(
            f"{place} is a tensor, but {map_type} needs the corners of a box of pixels, which a tensor does not "
            "contain. Remedy: define the operator by a function of `launch`, and pass a descriptor"
        )
    _check_dtype(place, map_type, argument)
    if argument.dim() != map_type.rank:
        raise RuntimeError(
            f"{place} has {argument.dim()} dimensions, but {map_type} has {map_type.rank}. Remedy: pass a view with "
            f"{map_type.rank} dimensions"
        )
    _check_layout(place, map_type, argument)


def _check_dtype(place: str, map_type: MapType, tensor: torch.Tensor) -> None:
    name = str(tensor.dtype).removeprefix("torch.")
    code, bits = DLPACK_DTYPES[name][:2] if name in DLPACK_DTYPES else (0, 0)
    wanted_bits = max(8, ELEMENTS[map_type.data_type].bits)
    if max(8, bits) == wanted_bits and dtype_codes(map_type.data_type) >> code & 1:
        return
    floats = float_dtype(map_type.data_type)
    rule = f"{map_type} takes {floats or f'elements of {wanted_bits} bits'}; no element is converted, not by autocast"
    remedy = f"tensor.to(torch.{floats})" if floats else "a tensor of such a dtype"
    raise RuntimeError(f"{place} has dtype {tensor.dtype}, but {rule}. Remedy: pass {remedy}")


def _check_layout(place: str, map_type: MapType, tensor: torch.Tensor) -> None:
    """Compare the shape and the strides with the rules of tensor maps.

    The check uses the values of symbolic sizes in the present call.
    """
    sizes = [*tensor.shape, *tensor.stride()]
    if not all(map(_has_hint, sizes)):
        return  # Sizes that depend on data are checked at the launch.
    values = [each if isinstance(each, int) else each.node.hint for each in sizes]
    rank = tensor.dim()
    if 0 in values[:rank]:
        return  # An empty tensor is correct if the outputs are also empty; otherwise, the launch raises an error.
    try:
        spec = TensorSpec(values[:rank], tensor.dtype, values[rank:])
        tensor_map_of(spec, lambda _: 0, _NEWEST, map_type.options, {})
    except TensorMapError as error:
        raise RuntimeError(f"{place}, {map_type}: {error}") from error
