"""The benchmark rows for ten thousand descriptors of one geometry that are created at once."""

from __future__ import annotations

from typing import Any

import numpy as np

import cuda_tma

from ..comparison import Comparison, Goal, Timer, Work, compare, each, python, queued
from .create import ENCODE, REPLACE, TORCH_NOTE, TORCH_TENSORS_GOAL, encode_floor
from .floor import MAP_BYTES
from .scene import BOXES, NBYTES, SHAPES, Scene

COUNT = 10_000
COMPARED = 100  # The benchmark compares the first COMPARED maps with maps that were encoded one by one.


def tables(scene: Scene, repeats: int) -> list[Comparison]:
    if not hasattr(cuda_tma, "create_tensor_maps"):
        return []
    notes = [
        "The table shows nanoseconds for each map. The addresses are in a NumPy array, and the tensors of torch are in "
        "a list.",
        TORCH_NOTE,
    ]
    return [compare("Ten thousand descriptors, each", works(scene), repeats, (ENCODE,), notes)]


def works(scene: Scene) -> list[Work]:
    return [
        Work(ENCODE, lambda: encode_floor(scene, 2)),
        Work(REPLACE, lambda: scene.floor.replace_address(scene.raw_map(), scene.address)),
        Work("cuda_tma, one view and an array of addresses", lambda: from_addresses(scene), Goal(0, 40), True),
        Work("cuda_tma, `replace_addresses`", lambda: replacing(scene), Goal(0, 20), True),
        Work("cuda_tma, torch tensors, float32", lambda: from_tensors(scene, tensors(scene)), TORCH_TENSORS_GOAL, True),
        Work(
            "cuda_tma, torch tensors, bfloat16",
            lambda: from_tensors(scene, [x.bfloat16() for x in tensors(scene)]),
            TORCH_TENSORS_GOAL,
        ),
        Work("cuda_tma, float32 views of one tensor", lambda: from_tensors(scene, views(scene))),
        Work("cuda_tma, torch tensors one at a time", lambda: one_at_a_time(scene)),
        Work("cuda_tma, `upload` (one transfer, with its allocation)", lambda: upload(scene)),
    ]


def addresses(scene: Scene) -> np.ndarray:
    """Return legal addresses, most of which are different. No load reads through the maps with these addresses."""
    step = NBYTES // COUNT // 16 * 16
    return scene.address + np.arange(COUNT, dtype=np.uint64) * np.uint64(step)


def made(scene: Scene) -> cuda_tma.TensorMapArray:
    return cuda_tma.create_tensor_maps(scene.view(), scene.options(), addresses=addresses(scene))


def from_addresses(scene: Scene) -> Timer:
    array, one = made(scene), scene.descriptor()
    for index, address in enumerate(addresses(scene)[:COMPARED]):
        one.replace_address(int(address))
        if bytes(array)[index * MAP_BYTES : (index + 1) * MAP_BYTES] != bytes(one):
            raise RuntimeError(f"map {index} of the array differs from the descriptor made alone")
    statement = "create(v, o, addresses=a)"
    create = cuda_tma.create_tensor_maps
    return each(python(statement, create=create, v=scene.view(), o=scene.options(), a=addresses(scene)), COUNT)


def replacing(scene: Scene) -> Timer:
    return each(python("array.replace_addresses(a)", array=made(scene), a=addresses(scene)), COUNT)


def tensors(scene: Scene) -> list[Any]:
    """Return tensors that have separate memory."""
    return [scene.torch.zeros(BOXES[2], device="cuda:0") for _ in range(COUNT)]


def views(scene: Scene) -> list[Any]:
    return [scene.tensors[0].view(SHAPES[2]) for _ in range(COUNT)]


def from_tensors(scene: Scene, given: list[object]) -> Timer:
    create = cuda_tma.create_tensor_maps
    return each(python("create(xs, o)", create=create, xs=given, o=scene.options()), COUNT)


def one_at_a_time(scene: Scene) -> Timer:
    create = cuda_tma.create_tensor_map
    return each(python("[create(x, o) for x in xs]", create=create, xs=tensors(scene), o=scene.options()), COUNT)


def upload(scene: Scene) -> Timer:
    stream = scene.stream
    return each(queued(python("array.upload(s)", array=made(scene), s=stream), stream.sync, batch=10), COUNT)
