"""The reasons for the refusal of a tensor map, in the user's terms: tensor order, option names, elements and bytes.

:mod:`cuda_tma.rules` uses the driver's terms. Each sentence of this module repeats the driver's terms in brackets at
its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from .._convolution import LOAD_PATCHES, PAD_LESS, REACH_LESS
from .._data_type import ELEMENTS, element_bits
from .._enum_members import PARAMETER_ENUMS
from .._errors import TensorMapError, Violation
from .._given import shown
from .._params_checks import check_params
from ..params import Params, TiledParams

__all__ = ["refusal", "sentence"]

# _CORNERS maps the name of a corner to its formula in a convolution.
_CORNERS = {
    "pixel_box_lower_corner": "-padding",
    "pixel_box_lower_corner_width": "-padding",
    "pixel_box_upper_corner": "padding - (kernel_size - 1) * dilation",
    "pixel_box_upper_corner_width": "padding - (kernel_size - 1) * dilation",
}
_AXES = "WHD"  # The letters W, H and D name the spatial dimensions, and W is innermost.


def refusal(
    params: Params, violations: Sequence[Violation], *, options: object = None, dtype_name: str | None = None
) -> TensorMapError:
    """Return the error for refused parameters, with every violation, its number and its remedy.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The refused parameters, in driver order.
    violations : sequence of Violation
        The violations from :func:`cuda_tma.check`. The tuple is empty if the driver refused parameters that satisfy the
        rules. The error then states this fact.
    options : TensorMapOptions or the like, optional
        The options of the user's call. The error contains their type.
    dtype_name : str, optional
        The dtype of the tensor (default: the name of the data type).

    Returns
    -------
    TensorMapError
        The error, with `violations` as an attribute.

    Raises
    ------
    TensorMapError
        If `params` or `violations` has another type.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> from cuda_tma.rules import check
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(1733, 128), global_strides=(6932,),
    ...                 box_dim=(32, 32), element_strides=(1, 1))
    >>> print(refusal(p, check(p), dtype_name="float32"))
    no tensor map for a float32 tensor of shape (128, 1733); 1 rule is broken:
    1. stride of dimension 0 is 6932 bytes (1733 float32 elements); TMA needs a multiple of 16. Pad the row to 1736 \
elements. [driver: global_strides[0]=6932]
    """
    check_params(params)
    if not isinstance(violations, list | tuple) or not all(isinstance(v, Violation) for v in violations):
        raise TensorMapError(f"violations is {shown(violations)}; pass the result of cuda_tma.check()")
    name = dtype_name or _enum_name("data_type", params.data_type)
    subject = f"a {name} tensor of shape {tuple(reversed(params.global_dim))}"
    if options is not None:
        subject += f" with {type(options).__name__}"
    if not violations:
        arguments = ", ".join(
            f"{f.name}={getattr(params, f.name)!r}" for f in fields(params) if f.name != "unexplained"
        )
        return TensorMapError(
            f"the driver refused a tensor map for {subject}, and no known rule explains it; "
            f"its arguments were {type(params).__name__}({arguments})"
        )
    count = f"{len(violations)} rules are" if len(violations) > 1 else "1 rule is"
    lines = [f"{i}. {sentence(params, v, name)}" for i, v in enumerate(violations, 1)]
    return TensorMapError("\n".join([f"no tensor map for {subject}; {count} broken:", *lines]), tuple(violations))


def sentence(params: Params, violation: Violation, dtype_name: str) -> str:
    """Return one violation in the user's terms, followed by the driver's terms."""
    parameter, index = violation.parameter, violation.index
    describe = _DESCRIBE.get(parameter, _plain)
    subject = describe(_Terms(params, dtype_name), violation)
    driver = parameter if index is None else f"{parameter}[{index}]"
    verb = "TMA needs" if violation.severity == "error" else "better:"
    if violation.rule == "array_length":
        verb = "it must be"
    remedy = _remedy(_Terms(params, dtype_name), violation)
    return f"{subject}; {verb} {violation.requirement}.{remedy} [driver: {driver}={violation.value}]"


class _Terms:
    """The conversion of driver order and bytes to tensor order and elements, for one tensor map."""

    def __init__(self, params: Params, dtype_name: str):
        self.rank = params.rank
        self.tiled = isinstance(params, TiledParams)
        # Without interleave, the first dimension in driver order is C, and the spatial dimensions follow.
        self.first_spatial = 0 if params.interleave else 1
        self.dtype_name = dtype_name
        self.bits = element_bits(params.data_type) if params.data_type in ELEMENTS else 0

    def dimension(self, v: Violation) -> int:
        """Return the dimension of the tensor for an index of the driver."""
        first = 1 if v.parameter == "global_strides" else self.first_spatial if v.parameter in _CORNERS else 0
        return self.rank - 1 - (v.index or 0) - first

    def name(self, v: Violation) -> str:
        """Return the name of the option as the user writes it."""
        if v.index is None:
            return v.parameter
        count = self.rank - 2 if v.parameter in _CORNERS else self.rank
        return f"{v.parameter}[{count - 1 - v.index}]"

    def along(self, v: Violation) -> str:
        """Return ``" along dimension 2, W"`` for a spatial dimension of an im2col map, or else an empty text."""
        spatial = (v.index or 0) - (0 if v.parameter in _CORNERS else self.first_spatial)
        if self.tiled or not 0 <= spatial < min(self.rank - 2, len(_AXES)):
            return ""
        return f" along dimension {self.dimension(v)}, {_AXES[spatial]}"

    def elements(self, size_bytes: int) -> str:
        """Return ``" (1733 float32 elements)"``, or an empty text if the bytes are not a whole number of elements."""
        if not self.bits or size_bytes * 8 % self.bits:
            return ""
        return f" ({size_bytes * 8 // self.bits} {self.dtype_name} elements)"

    def size(self, elements: int) -> str:
        """Return the text of a size, such as ``" (128 bytes)"``."""
        return f" ({elements * self.bits / 8:g} bytes)" if self.bits else ""


def _stride(t: _Terms, v: Violation) -> str:
    return f"stride of dimension {t.dimension(v)} is {v.value} bytes{t.elements(v.value)}"


def _extent(t: _Terms, v: Violation) -> str:
    return f"extent of dimension {t.dimension(v)} is {v.value}"


def _address(t: _Terms, v: Violation) -> str:
    return f"the tensor begins at address {v.value:#x}"


def _row(t: _Terms, v: Violation) -> str:
    """Return a text about box_dim or channels_per_pixel in elements.

    The text has the bytes of the innermost dimension.
    """
    if isinstance(v.value, tuple):
        return f"{v.parameter} is {tuple(reversed(v.value))}"
    inner = t.size(v.value) if v.index in (0, None) else ""
    return f"{t.name(v)} is {v.value}{inner}"


def _corner(t: _Terms, v: Violation) -> str:
    return f"{t.name(v)} is {v.value} ({_CORNERS[v.parameter]}{t.along(v)})"


def _element_stride(t: _Terms, v: Violation) -> str:
    along = "" if isinstance(v.value, tuple) else t.along(v)
    return _plain(t, v) + (f" (the convolution's stride{along})" if along else "")


def _plain(t: _Terms, v: Violation) -> str:
    if isinstance(v.value, tuple):
        return f"{v.parameter} is {tuple(reversed(v.value))}"
    return f"{t.name(v)} is {_enum_name(v.parameter, v.value)}"


def _unexplained(t: _Terms, v: Violation) -> str:
    return "the bytes contain bits that belong to no parameter"


def _capability(t: _Terms, v: Violation) -> str:
    return "the device has compute capability {}.{}".format(*v.value)


_DESCRIBE: dict[str, Callable[[_Terms, Violation], str]] = {
    "compute_capability": _capability,
    "global_address": _address,
    "global_dim": _extent,
    "global_strides": _stride,
    "box_dim": _row,
    "channels_per_pixel": _row,
    "element_strides": _element_stride,
    "unexplained": _unexplained,
    **dict.fromkeys(_CORNERS, _corner),
}

_REMEDY_OF_RULE = {
    "pixel_box_lower_corner_range": f" {PAD_LESS}.",
    "pixel_box_upper_corner_range": f" {REACH_LESS}.",
    "pixel_box_empty": " The dilated kernel does not fit into the padded extent: pad more, or use a smaller "
    "kernel_size or dilation.",
}


def _remedy(t: _Terms, v: Violation) -> str:
    """Return the remedy after a space, or an empty text if no useful remedy is known."""
    if v.rule in _REMEDY_OF_RULE and not _is_overflow(v):
        return _REMEDY_OF_RULE[v.rule]
    if v.parameter == "element_strides" and v.value != 0 and not isinstance(v.value, tuple) and t.along(v):
        return f" {LOAD_PATCHES}."
    if v.nearest is None:
        return f" {v.fix}" if v.fix else ""
    if v.parameter == "global_strides" and v.nearest <= 0:
        return " Copy the tensor: a fresh allocation has positive strides." if v.value < 0 else ""
    if v.parameter == "global_strides":
        elements = v.nearest * 8 // t.bits if t.bits and v.nearest * 8 % t.bits == 0 else None
        if v.index == 0 and elements is not None and v.nearest > v.value:
            return f" Pad the row to {elements} elements."
        return f" Make the stride {v.nearest} bytes{t.elements(v.nearest)}."
    if v.parameter == "global_address":
        return f" Begin the view at {v.nearest:#x}, or copy the tensor: a fresh allocation is aligned."
    if v.parameter == "rank":
        return f" Reshape the tensor to {v.nearest} dimensions."
    if v.parameter == "global_dim":
        return f" Make the extent {v.nearest}."
    rest = ", and load the other channels from another coordinate" if _fewer_channels(v) else ""
    return f" Use {t.name(v)}={_enum_name(v.parameter, v.nearest)}{_bytes_of_row(t, v)}{rest}."


def _is_overflow(v: Violation) -> bool:
    """Return whether a pixel box is empty because its end exceeds 32 bits."""
    return v.rule == "pixel_box_empty" and v.nearest is not None and v.nearest < v.value


def _fewer_channels(v: Violation) -> bool:
    return v.parameter == "channels_per_pixel" and v.nearest is not None and v.nearest < v.value


def _bytes_of_row(t: _Terms, v: Violation) -> str:
    inner = v.parameter == "channels_per_pixel" or (v.parameter == "box_dim" and v.index == 0)
    return t.size(v.nearest) if inner and v.nearest is not None else ""


def _enum_name(parameter: str, value: Any) -> str:
    """Return ``3 ("128B")`` for a driver value of an enum. Return any other value unchanged."""
    enum = PARAMETER_ENUMS.get(parameter)
    if enum is None or value not in _values(enum):
        return str(value)
    short = enum(value).short_name
    return short if parameter == "data_type" else f'{value} ("{short}")'


def _values(enum: Iterable[Any]) -> set[int]:
    return {int(m) for m in enum}
