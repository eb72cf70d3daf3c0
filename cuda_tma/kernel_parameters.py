"""The parameters of a kernel, including typed maps, and the shared memory that the kernel needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ._compile.compiled import compiled_of
from ._compile.parameter_types import ParameterType
from ._launch.shared_memory import static_shared_bytes_of
from ._launch.signature import layout_of, name_of, types_of
from ._map_type import MapPointer, MapType

if TYPE_CHECKING:
    from cuda.core import Kernel

__all__ = ["KernelParameter", "KernelParameters", "MapPointer", "MapType", "parameters_of"]


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """One parameter of a kernel.

    Attributes
    ----------
    name : str
        The name of the parameter in the source, or an empty text if it is unknown.
    type : {"integer", "float", "bool", "pointer", None}, MapType or MapPointer
        The type of the parameter. None stands for another type, such as a struct or an untyped ``TensorMap``, or for a
        type that the kernel's name does not contain.
    offset_bytes, size_bytes : int
        The place and the size of the parameter in the parameter block.
    """

    name: str
    type: ParameterType
    offset_bytes: int
    size_bytes: int

    @property
    def map_type(self) -> MapType:
        """The type of a typed map, or of the maps to which a pointer points.

        The attribute ``options`` of the type contains the options of these maps.

        Raises
        ------
        TypeError
            If the parameter has another type.
        """
        if isinstance(self.type, MapPointer):
            return self.type.target
        if isinstance(self.type, MapType):
            return self.type
        raise TypeError(
            f"parameter {self.name or '?'} is not a typed map, but {self.type or 'of another type'}; "
            "declare a typed map as TiledMap or Im2colMap (cuda_tma/tile.cuh)"
        )


@dataclass(frozen=True)
class KernelParameters:
    """The parameters of a kernel, by their index or name, and the shared memory that the kernel needs.

    Attributes
    ----------
    kernel : str
        The name of the kernel.
    parameters : tuple of KernelParameter
    static_shared_bytes : int
        The shared memory that the compiler allocated, on the current device.
    dynamic_shared_bytes : int
        The bytes that the kernel requests with ``cuda_tma::dynamic_shared<T>()``, or 0. :func:`launch` allocates these
        bytes.
    constants : mapping of str to int
        The constants that the call of :func:`compile` requested.
    """

    kernel: str
    parameters: tuple[KernelParameter, ...]
    static_shared_bytes: int
    dynamic_shared_bytes: int
    constants: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[KernelParameter]:
        return iter(self.parameters)

    def __contains__(self, key: object) -> bool:
        """Return whether the key is a parameter, or the name of a parameter."""
        return any(key == parameter or key == parameter.name != "" for parameter in self.parameters)

    def __getitem__(self, key: int | str) -> KernelParameter:
        """Return a parameter by its index or name."""
        if not isinstance(key, str):
            return self.parameters[key]
        for parameter in self.parameters:
            if parameter.name == key != "":
                return parameter
        names = ", ".join(parameter.name or "?" for parameter in self.parameters)
        raise KeyError(f"kernel {self.kernel} has no parameter {key!r}; use one of {names or 'none'}")


def parameters_of(kernel: Kernel) -> KernelParameters:
    """Return the parameters of a kernel, so that Python does not repeat declarations of C++.

    The compiler reports the types and names of the parameters for the kernels that :func:`compile` made. For other
    kernels, the types are from their C++ names. An ``extern "C"`` name contains no types, so :func:`launch` checks only
    the sizes of arguments. From PTX, the simulator reads the description that ``CUDA_TMA_KERNEL(name)`` of
    ``cuda_tma/kernel.cuh`` adds to a kernel, or the types of the ``.param`` declarations.

    Parameters
    ----------
    kernel : cuda.core.Kernel
        A kernel of cuda.core, or a kernel of the simulator.

    Returns
    -------
    KernelParameters

    Examples
    --------
    ::

        source = r'''
        #include <cuda_tma/tile.cuh>
        using namespace cuda_tma;
        using Window = Tile<FLOAT32, Box<32, 64>>;
        struct Shared { Window tiles[4]; Barrier full; };
        extern "C" __global__ void kernel(const __grid_constant__ TiledMap<Window> windows, float* out) {
            Shared& shared = dynamic_shared<Shared>();
        }'''
        parameters = cuda_tma.parameters_of(cuda_tma.compile(source, "kernel"))
        parameters["windows"].map_type.box_dim  # (32, 64)
        parameters.dynamic_shared_bytes  # 33792: the tiles and a barrier, in multiples of the tiles' alignment
    """
    # A kernel of the simulator has its parameters as an attribute.
    if isinstance(known := getattr(kernel, "parameters", None), KernelParameters):
        return known
    layout, compiled = layout_of(kernel), compiled_of(kernel)
    unknown = len(layout) * (None,)
    names = (
        compiled.parameter_names if compiled and len(compiled.parameter_names) == len(layout) else len(layout) * ("",)
    )
    return KernelParameters(
        name_of(kernel),
        tuple(
            KernelParameter(name, type_, offset, size)
            for name, type_, (offset, size) in zip(names, types_of(kernel) or unknown, layout, strict=True)
        ),
        static_shared_bytes_of(kernel),
        compiled.dynamic_shared_bytes if compiled else 0,
        MappingProxyType(dict(compiled.constants) if compiled else {}),
    )
