"""The parameters of a tensor (or its description) with given options.

The module contains all steps that make a descriptor, except the driver's encoder.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from ._data_type import DLPACK_DTYPES, dtype_name
from ._errors import TensorMapError
from ._given import integer, shown
from ._keywords import options_from
from ._make.encode import tiled_params
from ._options import TensorMapIm2colOptions, TensorMapIm2colWideOptions, TensorMapOptions, TiledKeywords
from ._read.dlpack import ExportedTensor, contiguous_strides, describe_tensor
from ._read.export import export_tensor
from .params import Im2colParams, Im2colWideParams, Params, TiledParams
from .rules import _refusals

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["TensorSpec", "params_of"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The description of a tensor without its memory, for :func:`params_of`.

    Parameters
    ----------
    shape : sequence of int
        Extents in elements, in tensor order (the last dimension is the innermost).
    dtype : dtype or str
        A NumPy, ml_dtypes, torch or JAX dtype, or its name. An element of ``float4_e2m1fn_x2`` is a byte, as in torch.
    strides : sequence of int, optional
        Strides in elements and in tensor order, as in torch and DLPack (NumPy's strides are in bytes). None means
        C-contiguous.
    address : int
        Address of the first element, in bytes.

    Attributes
    ----------
    shape, strides : tuple of int
    dtype : str
        The dtype's name.
    address : int

    Raises
    ------
    TensorMapError
        If a value is not an integer, does not fit in 64 bits, or is not a known dtype.

    Examples
    --------
    >>> TensorSpec([128, 1733], np.float32, strides=(1736, 1))
    TensorSpec(shape=(128, 1733), dtype='float32', strides=(1736, 1), address=0)
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    address: int = 0

    if TYPE_CHECKING:  # The constructor accepts more types than the fields contain.

        def __init__(
            self,
            shape: Sequence[SupportsIndex],
            dtype: Any,
            strides: Sequence[SupportsIndex] | None = None,
            address: SupportsIndex = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert the user's values to ints and a name. Refuse other values."""
        shape = _integers("shape", self.shape)
        if self.strides is None:
            _require_int64(f"shape={shown(shape)}, C-contiguous,", contiguous_strides(shape))
        strides = None if self.strides is None else _integers("strides", self.strides)
        if strides is not None and len(strides) != len(shape):
            raise TensorMapError(
                f"strides={strides} has length {len(strides)}, but shape={shape} has length {len(shape)}; pass one "
                "stride for each dimension"
            )
        address = integer("address", self.address)
        if not 0 <= address < 2**64:
            raise TensorMapError(f"address={shown(address)} is not a 64-bit address; pass 0 to 2^64 - 1")
        name = dtype_name(self.dtype)
        if name not in DLPACK_DTYPES:
            raise _refusals.dtype(name)
        values = {"shape": shape, "dtype": name, "strides": strides, "address": address}
        for field, value in values.items():
            object.__setattr__(self, field, value)


@overload
def params_of(
    tensor: object, options: TensorMapOptions | None = None, **keywords: Unpack[TiledKeywords]
) -> TiledParams: ...
@overload
def params_of(tensor: object, options: TensorMapIm2colOptions) -> Im2colParams: ...
@overload
def params_of(tensor: object, options: TensorMapIm2colWideOptions) -> Im2colWideParams: ...
@overload
def params_of(tensor: object, options: object) -> Params: ...
def params_of(tensor: object, options: object = None, **keywords: Any) -> Params:
    """Return the parameters of the descriptor for a tensor and options, without a driver or a GPU.

    The function encodes nothing. The function refuses only input that no parameters can represent: a stride that is not
    a whole number of elements, a negative stride, or options of another rank. :func:`cuda_tma.check` reports whether
    the driver accepts the map.

    Parameters
    ----------
    tensor : TensorSpec, array or tensor
        A description of a tensor, or a tensor on any device (also a NumPy array or a CPU tensor), as for
        :func:`cuda_tma.create_tensor_map`. The result does not keep the tensor alive, because the parameters contain
        only an address.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
        The options, whose type selects the mode: tiled, im2col or im2col wide.
    **keywords
        Fields of :class:`cuda_tma.TensorMapOptions`, instead of `options`.

    Returns
    -------
    TiledParams, Im2colParams or Im2colWideParams
        The parameters in driver order, with the innermost dimension first and strides in bytes.

    Raises
    ------
    TensorMapError
        If :func:`cuda_tma.create_tensor_map` also refuses to describe the tensor.
    TypeError, ValueError
        If the options are invalid.

    Examples
    --------
    >>> import cuda_tma
    >>> params = params_of(TensorSpec((128, 1733), "float32"), box_dim=(32, 32), swizzle="128B")
    >>> params.global_dim, params.global_strides, params.box_dim
    ((1733, 128), (6932,), (32, 32))
    >>> [violation.rule for violation in cuda_tma.check(params)]
    ['global_strides_alignment']

    The emulator reads an array at the array's own address:

    >>> from cuda_tma import emulate, testing
    >>> array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    >>> params = params_of(array, box_dim=(2, 8))
    >>> memory = testing.view_bytes(array)
    >>> emulate.load(params, memory, (8, 1), base_address=params.global_address).smem.view(np.uint16).reshape(2, 8)
    array([[ 72,  73,  74,  75,  76,  77,  78,  79],
           [136, 137, 138, 139, 140, 141, 142, 143]], dtype=uint16)
    """
    return tiled_params(described(tensor), options_from(options=options, **keywords))


def described(tensor: object) -> ExportedTensor:
    """Return the description of a tensor for :func:`params_of`. The description does not keep a NumPy array alive."""
    if isinstance(tensor, np.ndarray):
        tensor = _spec_of_array(tensor)
    if isinstance(tensor, TensorSpec):
        return describe_tensor(tensor.shape, tensor.strides, tensor.dtype, tensor.address)
    return export_tensor(tensor)


def _spec_of_array(array: np.ndarray) -> TensorSpec:
    """Return the description of an array from its attributes.

    NumPy's DLPack export does not support the dtypes of ml_dtypes, and NumPy 1 refuses to export read-only arrays.
    """
    spec, item_bytes = TensorSpec(array.shape, array.dtype, None, array.ctypes.data), array.itemsize
    if any(stride % item_bytes for stride in array.strides):
        raise _refusals.byte_strides(array.strides, item_bytes)
    return replace(spec, strides=tuple(stride // item_bytes for stride in array.strides))


def _integers(name: str, values: Any) -> tuple[int, ...]:
    try:
        found = tuple(map(operator.index, values))
    except TypeError:
        raise TensorMapError(
            f"{name}={shown(values)} is not a sequence of integers; pass one integer for each dimension"
        ) from None
    _require_int64(f"{name}={shown(found)}", found)
    return found


def _require_int64(given: str, values: Sequence[int]) -> None:
    """Refuse values outside the range of DLPack's extents and strides."""
    beyond = [value for value in values if not -(2**63) <= value < 2**63]
    if beyond:
        raise TensorMapError(f"{given} gives {shown(beyond[0])}, which does not fit in 64 bits; pass smaller values")
