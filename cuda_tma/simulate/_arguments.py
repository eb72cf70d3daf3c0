"""The block of a kernel's parameters, from what is passed: each at its offset, checked against what is known of it."""

from __future__ import annotations

import ctypes
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._given import shown
from .._launch.typed_map import dtype_codes
from ..errors import TensorMapError
from ..map_type import MapType
from ..params import Im2colWideParams
from ..params_of import described
from ..rules import launches
from .kernel import Kernel
from .ptx import Variable
from .tensor_map import TensorMap

__all__ = ["parameter_block"]

Address = Callable[[Any], int]
MakeMap = Callable[[Any, MapType], TensorMap]
_FLOATS: dict[int, type[np.floating]] = {2: np.float16, 4: np.float32, 8: np.float64}


def parameter_block(kernel: Kernel, arguments: Sequence[Any], address: Address, make_map: MakeMap) -> np.ndarray:
    """The bytes that a launch hands over.

    Parameters
    ----------
    kernel : Kernel
    arguments : sequence
        One for each parameter.
    address : callable
        The simulated address of an array.
    make_map : callable
        A tensor map of an array, for a parameter that is a typed map.

    Returns
    -------
    numpy.ndarray of uint8

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit its parameter. Of a tensor map it is a TensorMapError.
    """
    declared = kernel.program.entry.function.params
    if len(arguments) != len(declared):
        raise TypeError(f"{kernel.name} has {len(declared)} parameters, and {len(arguments)} arguments were given")
    last = declared[-1] if declared else None
    block = np.zeros(last.offset + last.size_bytes if last else 1, np.uint8)
    given = zip(declared, kernel.parameters, arguments, strict=True)
    for number, (parameter, known, argument) in enumerate(given):
        name = f"argument {number}" + (f" ({known.name})" if known.name else "")
        if isinstance(known.type, MapType):
            argument = _typed_map(f"{name} of kernel {kernel.name}", known.type, argument, make_map)
        data = _bytes(name, parameter, known.type, argument, address)
        if len(data) != parameter.size_bytes:
            raise TypeError(
                f"{name} is {len(data)} bytes, and the parameter has {parameter.size_bytes}: {_wanted(parameter)}"
            )
        block[parameter.offset : parameter.offset + len(data)] = np.frombuffer(data, np.uint8)
    return block


def _typed_map(where: str, of_type: MapType, argument: Any, make_map: MakeMap) -> Any:
    """A map of an array; one that was made is refused, where a launch on a GPU refuses it. Bytes pass as they are."""
    if isinstance(argument, (bytes, bytearray)):
        return argument
    if not isinstance(argument, TensorMap):
        return _map_of_array(where, of_type, argument, make_map)
    is_wide = isinstance(argument.params, Im2colWideParams)
    if launches.is_other_map(of_type, bytes(argument), is_wide):
        raise launches.other_map(where, of_type, bytes(argument), is_wide)
    return argument


def _map_of_array(where: str, of_type: MapType, array: Any, make_map: MakeMap) -> TensorMap:
    """Return the map of an array, whose elements must be the numbers that the kernel reads."""
    try:
        made = make_map(array, of_type)
        elements = described(array)
        if not dtype_codes(of_type.data_type) >> elements.dlpack_dtype[0] & 1:
            raise launches.other_elements(of_type, elements.dtype_name)
    except TensorMapError as error:
        raise launches.tensor(where, of_type, error) from error
    return made


def _bytes(name: str, parameter: Variable, of_type: Any, argument: Any, address: Address) -> bytes:
    if isinstance(argument, (bytes, bytearray, memoryview, TensorMap)):
        return bytes(argument)
    if isinstance(argument, np.generic):
        return _scalar(name, parameter, of_type, argument)
    if isinstance(argument, ctypes.c_void_p):
        argument = argument.value
    if isinstance(argument, ctypes._SimpleCData):
        return _scalar(name, parameter, of_type, np.array([argument.value], type(argument))[0])
    if isinstance(argument, (ctypes.Structure, ctypes.Union, ctypes.Array)):
        return bytes(argument)
    if isinstance(argument, (bool, numbers.Integral)):
        return _integer(name, parameter, of_type, int(argument))
    if isinstance(argument, numbers.Real):
        return _real(name, parameter, of_type, float(argument))
    if argument is None and parameter.size_bytes == 8:
        return bytes(8)  # a null pointer
    if parameter.size_bytes != 8:
        raise TypeError(f"{name} is {shown(argument)}; {_wanted(parameter)}")
    return address(argument).to_bytes(8, "little")


def _scalar(name: str, parameter: Variable, of_type: Any, argument: np.generic) -> bytes:
    """Its own bytes, unless they are known to mean something else there."""
    expected = of_type or ("float" if parameter.type.startswith("f") else None)
    kinds = {"float": "fV", "integer": "iuV", "bool": "b", "pointer": "iu"}.get(str(expected))
    if kinds and argument.dtype.kind not in kinds:
        raise TypeError(
            f"{name} is {argument!r}, and the parameter takes {_article(str(expected))}: its bits would be read as that"
        )
    return argument.tobytes()


def _article(expected: str) -> str:
    return {"float": "a floating-point number", "integer": "an integer"}.get(expected, f"a {expected}")


def _integer(name: str, parameter: Variable, of_type: Any, value: int) -> bytes:
    if of_type == "float" or (of_type is None and parameter.type.startswith("f")):
        return _real(name, parameter, of_type, float(value))
    bits = 8 * parameter.size_bytes
    if bits > 64 or not -(1 << (bits - 1)) <= value < 1 << bits:
        raise TypeError(f"{name} is {value}, which is no value of {bits} bits; {_wanted(parameter)}")
    return (value % (1 << bits)).to_bytes(parameter.size_bytes, "little")


def _real(name: str, parameter: Variable, of_type: Any, value: float) -> bytes:
    if of_type not in ("float", None) or not (of_type or parameter.type.startswith("f")):
        raise TypeError(f"{name} is {value}, and the parameter is no floating-point number: pass an integer")
    if parameter.size_bytes not in _FLOATS:
        raise TypeError(f"{name} is {value}; {_wanted(parameter)}")
    return _FLOATS[parameter.size_bytes](value).tobytes()


def _wanted(parameter: Variable) -> str:
    size = parameter.size_bytes
    if size == 8:
        return "pass an array, an address, or a number of 8 bytes"
    if size == 128:
        return "pass a tensor map of Device.create_tensor_map, or the bytes of a struct"
    return f"pass a number of {size} bytes" if size in (1, 2, 4) else f"pass the {size} bytes of a struct"
