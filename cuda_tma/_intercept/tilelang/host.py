"""The names of ``cuda.bindings.driver`` that TileLang's host code uses, for the simulated GPU of the session.

TileLang generates a Python module for each kernel. The generated module imports these names, creates the tensor maps,
and launches the kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from ... import rules
from ...params import Im2colParams, Params, TiledParams
from ...rules._explain import refusal
from ...simulate._config import Config
from ...simulate._tensor_map import TensorMap
from ..session import Session, current

CUresult = SimpleNamespace(CUDA_SUCCESS=0)
CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = CUtensorMapL2promotion = int
CUtensorMapFloatOOBfill = cuuint64_t = cuuint32_t = CUdevice = CUkernel = int
CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6)
CUstreamAttrID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW=1)
CUlimit = SimpleNamespace(CU_LIMIT_PERSISTING_L2_CACHE_SIZE=6)
CUaccessProperty = SimpleNamespace(CU_ACCESS_PROPERTY_PERSISTING=2, CU_ACCESS_PROPERTY_STREAMING=1)


class Library(NamedTuple):
    """The kernels that one C++ text contains.

    Attributes
    ----------
    ptx, source : str
    file : str
        The name of the C++ file in the PTX.
    clusters : mapping of str to tuple of int
        The extents of the clusters, by the name of the kernel.
    cooperative : frozenset of str
        The kernels whose CTAs all run at the same time.
    """

    ptx: str
    source: str
    file: str
    clusters: dict[str, tuple[int, ...]]
    cooperative: frozenset[str]


class Kernel(NamedTuple):
    """A kernel in a library."""

    library: Library
    name: str


def CUlaunchConfig() -> SimpleNamespace:
    """Return a launch configuration without attributes."""
    return SimpleNamespace(numAttrs=0, attrs=[])


def CUlaunchAttribute() -> SimpleNamespace:
    """Return an attribute for a launch."""
    return SimpleNamespace(id=0, value=SimpleNamespace())


def CUstreamAttrValue() -> SimpleNamespace:
    """Return an attribute of a stream. Attributes of caches have no effect on the simulator."""
    return SimpleNamespace(accessPolicyWindow=SimpleNamespace())


def _done(*_: Any) -> tuple[int, int]:
    return 0, 0


cuKernelSetAttribute = cuCtxSetLimit = cuCtxGetLimit = cuStreamSetAttribute = cuCtxResetPersistingL2Cache = _done
cuLibraryUnload = _done


def cuLibraryGetKernel(library: Library, name: bytes) -> tuple[int, Kernel]:
    """Return the kernel with a name."""
    return 0, Kernel(library, name.decode())


def cuTensorMapEncodeTiled(
    data_type: int,
    rank: int,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    element_strides: Sequence[int],
    interleave: int,
    swizzle: int,
    l2_promotion: int,
    oob_fill: int,
) -> tuple[int, TensorMap]:
    """Return a tiled tensor map. Refuse a map that the driver always refuses, with the broken rule."""
    return 0, _checked(
        TiledParams(
            data_type=data_type,
            global_address=address,
            global_dim=tuple(extents)[:rank],
            global_strides=tuple(strides)[: rank - 1],
            element_strides=tuple(element_strides)[:rank],
            interleave=interleave,
            swizzle=swizzle,
            l2_promotion=l2_promotion,
            oob_fill=oob_fill,
            box_dim=tuple(box)[:rank],
        )
    )


def cuTensorMapEncodeIm2col(
    data_type: int,
    rank: int,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    lower_corner: Sequence[int],
    upper_corner: Sequence[int],
    channels: int,
    pixels: int,
    element_strides: Sequence[int],
    interleave: int,
    swizzle: int,
    l2_promotion: int,
    oob_fill: int,
) -> tuple[int, TensorMap]:
    """Return a tensor map in the im2col mode."""
    return 0, _checked(
        Im2colParams(
            data_type=data_type,
            global_address=address,
            global_dim=tuple(extents)[:rank],
            global_strides=tuple(strides)[: rank - 1],
            element_strides=tuple(element_strides)[:rank],
            interleave=interleave,
            swizzle=swizzle,
            l2_promotion=l2_promotion,
            oob_fill=oob_fill,
            pixel_box_lower_corner=tuple(lower_corner),
            pixel_box_upper_corner=tuple(upper_corner),
            channels_per_pixel=channels,
            pixels_per_column=pixels,
        )
    )


def _checked(params: Params) -> TensorMap:
    broken = rules.check(params, _session().device.compute_capability)
    if broken:
        raise refusal(params, broken)
    return TensorMap(params, None)


def cuLaunchKernelEx(config: Any, kernel: Kernel, arguments: Any, extra: int) -> tuple[int]:
    """Run a launch on the simulated GPU."""
    library = kernel.library
    cluster = library.clusters.get(kernel.name)
    ctas = (config.gridDimX, config.gridDimY, config.gridDimZ)
    grid = tuple(extent // by for extent, by in zip(ctas, cluster, strict=True)) if cluster else ctas
    launch = Config(
        grid=grid,
        block=(config.blockDimX, config.blockDimY, config.blockDimZ),
        cluster=cluster,
        shmem_size=config.sharedMemBytes,
        is_cooperative=kernel.name in library.cooperative,
        programmatic_stream_serialization=bool(config.numAttrs),
    )
    values = [_argument(value, of_type) for value, of_type in zip(*map(_items, arguments), strict=True)]
    _session().launch(
        kernel.name,
        library.ptx,
        kernel.name,
        launch,
        values,
        runtime="tilelang",
        sources={library.file: library.source},
        generated=(library.file,),
    )
    return (0,)


def _items(given: Any) -> tuple[Any, ...]:
    """Return the arguments as a tuple. TileLang writes a single argument without a comma."""
    return given if isinstance(given, tuple) else (given,)


def _argument(value: Any, of_type: Any) -> Any:
    """Return a number with the size of its type. Return an address or a tensor map unchanged."""
    if of_type is None or of_type is ctypes.c_void_p or isinstance(value, TensorMap):
        return value
    return of_type(value)


def _session() -> Session:
    session = current()
    assert session is not None
    return session
