"""Changes of the examples' tiles in C++ alone: boxes, data types, swizzles; and Python with the maps of before."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from cuda_tma import MapPointer, MapType, TensorMapError

__all__ = ["MUTATIONS", "Mutation", "NotRefused", "differences", "refusal"]

_SWIZZLES = ("", ", SWIZZLE_32B", ", SWIZZLE_64B", ", SWIZZLE_128B")


@dataclass(frozen=True)
class Mutation:
    """Texts of an example's kernel, each with what replaces it, all places of it."""

    example: str
    changes: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.example}: {'; '.join(f'{old} -> {new}' for old, new in self.changes)}"

    def applied(self, source: str) -> str:
        for old, new in self.changes:
            if old not in source or old == new:
                raise ValueError(f"{self}: the kernel has no {old!r}, or the same")
            source = source.replace(old, new)
        return source


def _tiles(data_types: str, boxes: str) -> list[str]:
    """Every tile of these data types and boxes, with every swizzle."""
    every = itertools.product(data_types.split(), boxes.split("; "), _SWIZZLES)
    return [f"Tile<{data_type}, Box<{box}>{swizzle}>" for data_type, box, swizzle in every]


def _instead(example: str, old: str, tiles: list[str]) -> Iterator[Mutation]:
    yield from (Mutation(example, ((old, new),)) for new in tiles if new != old)


def _tiled_load() -> Iterator[Mutation]:
    old = "Tile<FLOAT32, Box<32, 64>>"
    yield from _instead("tiled_load", old, _tiles("FLOAT32", "32, 64; 16, 64; 32, 32; 8, 256; 40, 100"))
    yield from _instead("tiled_load", old, _tiles("FLOAT32_FTZ", "32, 64"))


def _copy_2d() -> Iterator[Mutation]:
    old = "Tile<FLOAT32, Box<16, 256>>"
    yield from _instead("copy_2d", old, _tiles("FLOAT32", "16, 256; 8, 128; 64, 32; 1, 256"))
    yield from _instead("copy_2d", old, _tiles("INT32 UINT32 FLOAT32_FTZ", "32, 64"))


def _fp8_tiles() -> Iterator[Mutation]:
    old = "Tile<UINT8, Box<64, 128>, SWIZZLE_128B>"
    yield from _instead("fp8_tiles", old, _tiles("UINT8", "64, 128; 32, 64; 128, 256; 16, 32"))
    yield Mutation("fp8_tiles", ((old, "Tile<UINT8, Box<16, 512>, SWIZZLE_128B>"),))


def _replace_address() -> Iterator[Mutation]:
    old = "Tile<INT32, Box<32, 32>>"
    yield from _instead("replace_address", old, _tiles("INT32", "32, 32; 64, 32; 8, 128"))
    yield from _instead("replace_address", old, _tiles("UINT32", "16, 64"))


def _transpose() -> Iterator[Mutation]:
    size, loaded, stored = "SIZE = 64", "Box<SIZE, SIZE>, SWIZZLE_128B>", "Box<SIZE, SIZE>>"
    for swizzle in _SWIZZLES:
        new = f"Box<SIZE, SIZE>{swizzle}>"
        if new != loaded:
            yield Mutation("transpose", ((loaded, new),))
            yield Mutation("transpose", ((size, "SIZE = 32"), (loaded, new)))
        if new != stored:
            yield Mutation("transpose", ((stored, new),))
            yield Mutation("transpose", ((size, "SIZE = 32"), (stored, new)))
    yield Mutation("transpose", ((size, "SIZE = 32"),))
    yield from (Mutation("transpose", (("In = Tile<FLOAT32", f"In = Tile<{t}"),)) for t in ("INT32", "FLOAT32_FTZ"))
    yield Mutation("transpose", (("Out = Tile<FLOAT32", "Out = Tile<FLOAT32_FTZ"),))


def _gather_rows() -> Iterator[Mutation]:
    for rows, width in ((4, 128), (4, 256), (8, 64), (8, 16), (16, 64), (16, 32), (32, 32)):
        yield Mutation("gather_rows", (("ROWS = 8, WIDTH = 128", f"ROWS = {rows}, WIDTH = {width}"),))
    other = ("Tile<INT64", "Tile<UINT64")
    yield Mutation("gather_rows", (other,))
    yield Mutation("gather_rows", (other, ("ROWS = 8, WIDTH = 128", "ROWS = 16, WIDTH = 64")))


def _kv_tiles() -> Iterator[Mutation]:
    old = "Tile<Type, Box<Rows, D>, SWIZZLE_128B>"
    yield from _instead("kv_tiles", old, _tiles("Type", "Rows, D; Rows / 2, D"))
    yield from _instead("kv_tiles", old, _tiles("UINT16", "Rows, D"))
    old = "Tile<Type, Box<Rows, Width>, SWIZZLE_128B>"
    yield from _instead("kv_tiles", old, _tiles("Type", "Rows, Width"))


def _gemm() -> Iterator[Mutation]:
    half, operands = ("TYPE = BFLOAT16", "TYPE = FLOAT16"), "TILE_K>, SWIZZLE_128B"
    narrow, stored = ("TILE_K = 64", "TILE_K = 32"), "PART>, SWIZZLE_128B"
    deep = (("TILE_K = 64", "TILE_K = 128"), ("STAGES = 4", "STAGES = 2"))
    for swizzle in ("SWIZZLE_32B", "SWIZZLE_64B"):
        other = (operands, f"TILE_K>, {swizzle}")
        yield from (Mutation("gemm", (other, *more)) for more in ((), (half,), (narrow,), deep))
        yield Mutation("gemm", ((stored, f"PART>, {swizzle}"),))
    yield from (Mutation("gemm", changes) for changes in ((half,), (narrow,), deep))
    yield Mutation("gemm", ((stored, "PART>"),))
    yield from (Mutation("gemm", (("PART = 64", f"PART = {part}"),)) for part in (32, 16))
    yield from (Mutation("gemm", (("TILE_N = 256", f"TILE_N = {width}"),)) for width in (128, 192))


def _conv_im2col() -> Iterator[Mutation]:
    half, narrow = ("TYPE = BFLOAT16", "TYPE = FLOAT16"), ("CHANNELS = 64", "CHANNELS = 32")
    for swizzle in ("SWIZZLE_32B", "SWIZZLE_64B"):
        other = ("CHANNELS>, SWIZZLE_128B", f"CHANNELS>, {swizzle}")
        yield from (Mutation("conv_im2col", (other, *more)) for more in ((), (half,), (narrow,)))
        yield Mutation("conv_im2col", (("Box<16, 64>, SWIZZLE_128B", f"Box<16, 64>, {swizzle}"),))
    yield from (Mutation("conv_im2col", changes) for changes in ((half,), (narrow,)))
    yield from (
        Mutation("conv_im2col", (("Box<16, 64>, SWIZZLE_128B", new),)) for new in ("Box<16, 64>", "Box<16, 32>")
    )
    yield Mutation("conv_im2col", (("FILTERS = 256", "FILTERS = 128"),))


def _grouped_gemm() -> Iterator[Mutation]:
    half = ("TYPE = BFLOAT16", "TYPE = FLOAT16")
    yield Mutation("grouped_gemm", (half,))
    for promotion in ("L2_PROMOTION_64B", "L2_PROMOTION_128B"):
        other = ("L2_PROMOTION_256B", promotion)
        yield from (Mutation("grouped_gemm", changes) for changes in ((other,), (half, other)))


def _attention() -> Iterator[Mutation]:
    half = ("TYPE = BFLOAT16", "TYPE = FLOAT16")
    yield Mutation("attention", (half,))
    for rows in (64, 96):
        fewer = ("d == 256 ? 80 : 128", f"d == 256 ? 80 : {rows}")
        yield from (Mutation("attention", changes) for changes in ((fewer,), (half, fewer)))


_OF_EXAMPLES = (
    _tiled_load, _copy_2d, _fp8_tiles, _replace_address, _transpose, _gather_rows, _kv_tiles, _gemm, _conv_im2col,
    _grouped_gemm, _attention,
)  # fmt: skip
MUTATIONS = tuple(mutation for mutations in _OF_EXAMPLES for mutation in mutations())


# ---- Python as it was before ----


class NotRefused(AssertionError):
    """A map of another tile got to a launch, or was refused in words that do not name both sides."""


class _Reached(Exception):
    """A launch was prepared, with arguments that were taken."""


def differences(before: MapType, after: MapType) -> dict[str, tuple[object, object]]:
    """What a map of one type lacks for another: what differs, by its name. A type's default fill and promotion allow
    any."""
    old, new = before.keywords, after.keywords
    any_is_right = {name for name in ("oob_fill", "l2_promotion") if not new[name]}
    return {name: (old[name], new[name]) for name in new if name not in any_is_right and old[name] != new[name]}


def refusal(module: Any, original: str) -> dict[str, str] | None:
    """Run an example's first case with the maps, sizes and grids of the `original` kernel, up to its launch.

    Parameters
    ----------
    module : module
        An example, with a changed SOURCE.
    original : str
        The source before.

    Returns
    -------
    dict of str to str, or None
        For each parameter whose type differs, what differs; the launch was refused by a message that names both sides.
        None: what moves is no other box, and the launch was taken.

    Raises
    ------
    NotRefused
        If a wrong map was taken, or a right one refused.
    """
    namespace, found = module.cuda_tma, {}
    module.cuda_tma = _as_before(namespace, original, found)
    try:
        if hasattr(module, "cases"):
            for _, ours, *_ in module.cases(module.SMALL):
                ours()
        else:
            module.main()
    except TensorMapError as error:
        _require_both_sides(found, str(error))
        return {name: ", ".join(differing) for name, (_, differing) in found.items()}
    except _Reached:
        if not found:
            return None
        raise NotRefused(f"taken, though these differ: {found}") from None
    finally:
        module.cuda_tma = namespace
    raise NotRefused("nothing was launched")


def _require_both_sides(found: dict[str, tuple[MapType, dict]], message: str) -> None:
    for name, (map_type, differing) in found.items():
        sides = [str(map_type), f"({name})", *(_shown(side) for pair in differing.values() for side in pair)]
        if all(side in message for side in sides):
            return
    raise NotRefused(f"{found} differ, and the message was: {message}")


def _shown(side: Any) -> str:
    return getattr(side, "short_name", str(side))


def _as_before(namespace: Any, original: str, found: dict[str, Any]) -> SimpleNamespace:
    """The package, whose kernels say of themselves what the original ones do, and whose launches take maps of those."""

    @cache
    def before(kernel: Any) -> Any:
        return namespace.parameters_of(namespace.compile(original, *asked[id(kernel)][0], **asked[id(kernel)][1]))

    asked: dict[int, tuple[tuple, dict]] = {}

    def compile(source: str, *names: str, **options: Any) -> Any:
        kernel = namespace.compile(source, *names, **options)
        asked[id(kernel)] = names, options
        return kernel

    def prepare(kernel: Any, config: Any, *arguments: Any) -> None:
        namespace.prepare(kernel, config, *_with_maps(namespace, before(kernel), kernel, arguments, found))
        raise _Reached

    def launch(stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        prepare(kernel, config, *arguments)

    doors = {"compile": compile, "parameters_of": before, "prepare": prepare, "launch": launch}
    return SimpleNamespace(**{**vars(namespace), **doors})


def _with_maps(namespace: Any, before: Any, kernel: Any, arguments: tuple, found: dict[str, Any]) -> Iterator[Any]:
    """The arguments, of tensors the maps that were right before; and which parameters have another type now."""
    for was, now, argument in zip(before, namespace.parameters_of(kernel), arguments, strict=True):
        is_map = isinstance(was.type, MapType | MapPointer)
        if is_map and (differing := differences(was.map_type, now.map_type)):
            found[was.name] = now.map_type, differing
        if isinstance(was.type, MapType) and not hasattr(argument, "replace_address"):
            argument = namespace.create_tensor_map(argument, was.map_type.options)
        yield argument
