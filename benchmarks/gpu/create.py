"""The benchmark rows for single descriptors from views, torch tensors and CuPy arrays, for views, and for replaced
addresses.
"""

from __future__ import annotations

import ctypes
import functools

from cuda.bindings import driver
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma._read import dlpack as _dlpack
from cuda_tma._read import export as _export
from cuda_tma.params import TiledParams

from ..comparison import Comparison, Goal, Timer, Work, compare, python
from .floor import MAP_BYTES, map_memory
from .scene import BOXES, SHAPES, Scene

ENCODE = "C: cuTensorMapEncodeTiled"
EXCHANGE = "C: torch's owning DLPack exchange"
STORAGE = "C: untyped_storage()"
REPLACE = "C: cuTensorMapReplaceAddress"
CURRENT = "C: cuCtxGetCurrent"
CUPY_EXPORT = "CuPy: its own `__dlpack__`"

VIEW_GOAL, DEVICE_GOAL, KEYWORDS_GOAL = Goal(3.5), Goal(4), Goal(5)
VIEW_NOTE = (
    "The row of C only encodes prepared arguments. Python calls the functions of `cuda_tma`, which read the view, get "
    "the current context from the driver, and create an object that the garbage collector tracks. For these three "
    "steps, the goal allows the time of two and a half encodes. The goal also allows half an encode for the method of "
    "a device, and one encode for two keywords. Access to private layouts of CPython's objects would make the "
    "keywords and the method some 20 ns faster, which is less than 1 % of a launch."
)
TORCH_GOAL = Goal(2.5)
TORCH_REPLACE_GOAL = Goal(0, 250)
TORCH_TENSORS_GOAL = Goal(0, 250)
TORCH_NOTE = (
    "`cuda_tma` tests every tensor, of any dtype, for a lazy negation (`torch._neg_view`), whose memory contains "
    "other values than the tensor."
)
REPLACE_NOTE = (
    "A map is valid in one context, so `replace_address` reads the current context. `replace_address` also keeps the "
    "map unchanged if the driver refuses the address. The goal for an int address allows the time of two calls of C "
    "and one call of Python."
)


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    return [
        compare("Create from a view, rank 2", from_view(scene), repeats, (ENCODE,), [VIEW_NOTE]),
        compare("Create from a view, rank 5", from_view_of_rank_5(scene), repeats, (ENCODE,)),
        compare(
            "Create from a torch tensor, float32",
            from_torch(scene),
            repeats,
            (EXCHANGE, STORAGE, ENCODE),
            [TORCH_NOTE, TRITON_NOTE],
        ),
        compare(
            "Create from a torch view, float32",
            from_torch_view(scene),
            repeats,
            (EXCHANGE, STORAGE, ENCODE),
        ),
        compare("Create from a CuPy array", from_cupy(scene), repeats, (CUPY_EXPORT,)),
        compare("View of a torch tensor", views(scene), repeats, (EXCHANGE,)),
        compare("Replace the address", replacements(scene), repeats, (REPLACE,), [REPLACE_NOTE, TORCH_NOTE]),
    ]


TRITON_NOTE = "Triton's `from_tensor` does not encode a map, because Triton encodes at every launch."


def from_view(scene: Scene) -> list[Work]:
    create, view, options = cuda_tma.create_tensor_map, scene.view(), scene.options()
    return [
        Work(ENCODE, lambda: encode_floor(scene, 2)),
        Work(CURRENT, lambda: scene.floor.current_context()),
        Work("cuda_tma, options", lambda: python("create(v, o)", create=create, v=view, o=options), VIEW_GOAL, True),
        Work("cuda_tma, `as_tensor_map(options=)`", lambda: python("v.as_tensor_map(options=o)", v=view, o=options)),
        Work(
            "cuda_tma, `device.create_tensor_map`",
            lambda: python("d.create_tensor_map(v, o)", d=scene.device, v=view, o=options),
            DEVICE_GOAL,
        ),
        Work(
            "cuda_tma, `device.create_tensor_map(options=)`",
            lambda: python("d.create_tensor_map(v, options=o)", d=scene.device, v=view, o=options),
            DEVICE_GOAL,
        ),
        Work(
            "cuda_tma, `device.create_tensor_map` with keywords",
            lambda: python("d.create_tensor_map(v, box_dim=(64, 32), swizzle='128B')", d=scene.device, v=view),
            KEYWORDS_GOAL,
        ),
        Work("cuda_tma, keywords", lambda: python("v.as_tensor_map(box_dim=box)", v=view, box=BOXES[2])),
        Work(
            "cuda.core, options",
            lambda: python("v.as_tensor_map(options=o)", v=scene.core_view(), o=scene.core_options()),
        ),
        Work("cuda.core, keywords", lambda: python("v.as_tensor_map(box_dim=box)", v=scene.core_view(), box=BOXES[2])),
        Work("cuda.bindings", lambda: bindings_encode(scene.descriptor().params)),
    ]


def from_view_of_rank_5(scene: Scene) -> list[Work]:
    create, view, options = cuda_tma.create_tensor_map, scene.view(5), scene.options(5)
    return [
        Work(ENCODE, lambda: encode_floor(scene, 5)),
        Work("cuda_tma, options", lambda: python("create(v, o)", create=create, v=view, o=options), VIEW_GOAL, True),
        Work("cuda.core, keywords", lambda: python("v.as_tensor_map(box)", v=scene.core_view(5), box=BOXES[5])),
        Work("cuda.bindings", lambda: bindings_encode(scene.descriptor(5).params)),
    ]


def from_torch(scene: Scene) -> list[Work]:
    create, options = cuda_tma.create_tensor_map, scene.options()
    by_core = "View.from_any_interface(x, stream_ptr=-1).as_tensor_map(options=o)"
    return [
        Work(EXCHANGE, lambda: scene.floor.exchange(scene.tensors[0])),
        Work(STORAGE, lambda: scene.floor.method(scene.tensors[0], "untyped_storage")),
        Work(ENCODE, lambda: encode_floor(scene, 2)),
        Work(
            "cuda_tma", lambda: python("create(x, o)", create=create, x=scene.tensors[0], o=options), TORCH_GOAL, True
        ),
        Work(
            "cuda_tma, bfloat16",
            lambda: python("create(x, o)", create=create, x=scene.bfloat16_tensors[0], o=options),
            TORCH_GOAL,
        ),
        Work(
            "cuda_tma, `device.create_tensor_map` with keywords",
            lambda: python("d.create_tensor_map(x, box_dim=b)", d=scene.device, x=scene.tensors[0], b=BOXES[2]),
        ),
        Work("cuda.core", lambda: python(by_core, View=CoreView, x=scene.tensors[0], o=scene.core_options())),
        Work("Triton, `TensorDescriptor.from_tensor`", lambda: triton_descriptor(scene)),
    ]


def from_torch_view(scene: Scene) -> list[Work]:
    create, options, view = cuda_tma.create_tensor_map, scene.options(), scene.tensors[0].view(SHAPES[2])
    return [
        Work(EXCHANGE, lambda: scene.floor.exchange(view)),
        Work(STORAGE, lambda: scene.floor.method(view, "untyped_storage")),
        Work(ENCODE, lambda: encode_floor(scene, 2)),
        Work("cuda_tma", lambda: python("create(x, o)", create=create, x=view, o=options), TORCH_GOAL, True),
    ]


def from_cupy(scene: Scene) -> list[Work]:
    create, options = cuda_tma.create_tensor_map, scene.options()
    by_core = "View.from_any_interface(x, stream_ptr=-1).as_tensor_map(options=o)"
    return [
        Work(CUPY_EXPORT, lambda: cupy_export(cupy_array())),
        Work(
            "cuda_tma", lambda: python("create(x, o)", create=create, x=cupy_array(), o=options), Goal(1.3, 250), True
        ),
        Work("cuda.core", lambda: python(by_core, View=CoreView, x=cupy_array(), o=scene.core_options())),
    ]


def views(scene: Scene) -> list[Work]:
    statement, view = "View.from_any_interface(x, stream_ptr=-1)", cuda_tma.StridedMemoryView
    export = _export.export_tensor
    return [
        Work(EXCHANGE, lambda: scene.floor.exchange(scene.tensors[0])),
        Work("cuda_tma, what `create` reads", lambda: python("export(x)", export=export, x=scene.tensors[0])),
        Work("cuda_tma", lambda: python(statement, View=view, x=scene.tensors[0]), None, True),
        Work("cuda.core", lambda: python(statement, View=CoreView, x=scene.tensors[0])),
    ]


def replacements(scene: Scene) -> list[Work]:
    def ours(value: object) -> Timer:
        return python("d.replace_address(value)", d=scene.descriptor(), value=value)

    def ours_bfloat16() -> Timer:
        descriptor = cuda_tma.create_tensor_map(scene.bfloat16_tensors[0], scene.options())
        return python("d.replace_address(value)", d=descriptor, value=scene.bfloat16_tensors[1])

    def cores(value: object) -> Timer:
        return python("d.replace_address(value)", d=scene.core_descriptor(), value=value)

    return [
        Work(REPLACE, lambda: scene.floor.replace_address(scene.raw_map(), scene.address)),
        Work(CURRENT, lambda: scene.floor.current_context()),
        Work("an empty loop of Python", lambda: python("pass")),
        Work("cuda_tma, by an int", lambda: ours(scene.address), Goal(0, 60), True),
        Work("cuda_tma, by a view", lambda: ours(scene.view(2, 1)), Goal(0, 100), True),
        Work("cuda_tma, by a torch tensor", lambda: ours(scene.tensors[1]), TORCH_REPLACE_GOAL, True),
        Work("cuda_tma, by a torch tensor, bfloat16", ours_bfloat16, TORCH_REPLACE_GOAL),
        Work("cuda.core, by a view", lambda: cores(scene.core_view(2, 1))),
        Work("cuda.core, by a torch tensor", lambda: cores(scene.tensors[1])),
        Work("cuda.bindings, by an int", lambda: bindings_replace(scene)),
    ]


# ---- the floor and other libraries ----


def encode_floor(scene: Scene, rank: int) -> Timer:
    """Return a timer for the encoding of this package's map in C.

    Raise an error unless both encodings give the same bytes."""
    descriptor, memory = scene.descriptor(rank), map_memory()
    timer = scene.floor.encode(descriptor.params, memory)
    timer(1)
    if memory.raw != bytes(descriptor):
        raise RuntimeError("C's bytes differ from ours: they do not describe the same tensor")
    return timer


def bindings_encode(params: TiledParams) -> Timer:
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    arguments = (
        driver.CUtensorMapDataType(params.data_type),
        params.rank,
        params.global_address,
        [wide(value) for value in params.global_dim],
        [wide(value) for value in params.global_strides],
        [narrow(value) for value in params.box_dim],
        [narrow(value) for value in params.element_strides],
        driver.CUtensorMapInterleave(params.interleave),
        driver.CUtensorMapSwizzle(params.swizzle),
        driver.CUtensorMapL2promotion(params.l2_promotion),
        driver.CUtensorMapFloatOOBfill(params.oob_fill),
    )
    require_success(driver.cuTensorMapEncodeTiled(*arguments))
    names = {f"a{index}": value for index, value in enumerate(arguments)}
    return python(f"encode({', '.join(names)})", encode=driver.cuTensorMapEncodeTiled, **names)


def bindings_map(descriptor: cuda_tma.TensorMapDescriptor) -> driver.CUtensorMap:
    """Return a CUtensorMap of cuda.bindings with the bytes of this package's map."""
    found = driver.CUtensorMap()
    ctypes.memmove(found.getPtr(), bytes(descriptor), MAP_BYTES)
    return found


def bindings_replace(scene: Scene) -> Timer:
    tensor_map, replace = bindings_map(scene.descriptor()), driver.cuTensorMapReplaceAddress
    require_success(replace(tensor_map, scene.address))
    return python("replace(m, address)", replace=replace, m=tensor_map, address=scene.address)


def require_success(results: tuple) -> None:
    """Raise an error for an error code of cuda.bindings."""
    if int(results[0]) != 0:
        raise RuntimeError(f"cuda.bindings: {results[0].name}")


def triton_descriptor(scene: Scene) -> Timer:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return python(
        "from_tensor(x, box)", from_tensor=TensorDescriptor.from_tensor, x=scene.tensors[0], box=list(BOXES[2])
    )


@functools.cache
def cupy_array() -> object:
    import cupy

    return cupy.zeros((1024, 1024), cupy.float32)


def cupy_export(array: object) -> Timer:
    """Time the call that this package also makes. CuPy before DLPack 1.0 does not accept max_version."""
    for statement in ("x.__dlpack__(max_version=version, stream=-1)", "x.__dlpack__(stream=-1)"):
        timer = python(statement, x=array, version=_dlpack.DLPACK_VERSION)
        try:
            timer(1)
        except TypeError:
            continue
        return timer
    raise RuntimeError("CuPy's __dlpack__ takes no stream=-1")
