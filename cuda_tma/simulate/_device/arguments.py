"""The conversion of arguments to the parameter block of a kernel, with the errors of a launch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._errors import TensorMapError
from ..._launch.packed import packed, packed_map, require_count, wants_map_of
from ..._launch.signature import Signature, described, place_of
from ..._launch.typed_map import dtype_codes
from ..._map_type import MapType
from ..._params_of import described as description_of
from ..._tensor_map import TensorMapDescriptor
from ...params import Im2colWideParams
from ...rules import _launches
from .._kernel import Kernel
from .._tensor_map import TensorMap

__all__ = ["parameter_block"]

Address = Callable[[Any], int]
MakeMap = Callable[[Any, MapType], TensorMap]


def parameter_block(kernel: Kernel, arguments: Sequence[Any], address: Address, make_map: MakeMap) -> np.ndarray:
    """Return the block of bytes that contains the parameters of a launch.

    Parameters
    ----------
    kernel : Kernel
    arguments : sequence
        One argument for each parameter of the kernel.
    address : callable
        A function that returns the simulated address of an array.
    make_map : callable
        A function that returns a tensor map of an array, for a parameter that is a typed map.

    Returns
    -------
    numpy.ndarray of uint8

    Raises
    ------
    TypeError, OverflowError, ValueError
        If an argument does not fit its parameter; for a tensor map, a TensorMapError.
    """
    known = kernel.parameters
    signature = described(known.kernel, known, address)
    require_count(signature, len(arguments))
    end = known[-1].offset_bytes + known[-1].size_bytes if len(known) else 1
    block = np.zeros(end, np.uint8)
    for index, (parameter, argument) in enumerate(zip(known, arguments, strict=True)):
        data = _packed(signature, index, argument, make_map)
        block[parameter.offset_bytes :][: len(data)] = np.frombuffer(data, np.uint8)
    return block


def _packed(signature: Signature, index: int, argument: Any, make_map: MakeMap) -> bytes:
    if isinstance(argument, TensorMapDescriptor):
        raise TypeError(
            f"{place_of(signature, index)} is a tensor map of a GPU's memory, which the simulator cannot access; pass "
            "a map from simulate.Device.create_tensor_map"
        )
    if not isinstance(argument, TensorMap):
        if not wants_map_of(signature, index, argument):
            return packed(signature, index, argument)
        argument = _map_of_array(signature, index, argument, make_map)
    return packed_map(signature, index, bytes(argument), isinstance(argument.params, Im2colWideParams))


def _map_of_array(signature: Signature, index: int, array: Any, make_map: MakeMap) -> TensorMap:
    """Return the tensor map of an array, after a check that the elements have the type that the kernel reads."""
    of_type = (signature.types or ())[index]
    assert isinstance(of_type, MapType)
    try:
        made = make_map(array, of_type)
        elements = description_of(array)
        if not dtype_codes(of_type.data_type) >> elements.dlpack_dtype[0] & 1:
            raise _launches.other_elements(of_type, elements.dtype_name)
    except TensorMapError as error:
        raise _launches.tensor(place_of(signature, index), of_type, error) from error
    return made
