"""The command ``cuda-tma layouts``, which shows the places of a matrix's elements, and applies CuTe's tilers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import TensorMapError
from .._files import write
from .console import print_json, print_table
from .exit_status import ACCEPTED, REFUSED, Misuse

if TYPE_CHECKING:
    from ..layouts import Comparison

__all__ = ["run"]

_MOST_DRAWN = 4096


def run(arguments: argparse.Namespace) -> int:
    """Compare two layouts, divide a layout, or combine threads with values; without layouts, list all names."""
    from ..layouts import NAMES

    given = [name for name in (arguments.written, arguments.read) if name is not None]
    if arguments.divide or arguments.values:
        return _tiled(given, arguments)
    if not given:
        return _listed(dict(NAMES), arguments.json)
    if len(given) == 1:
        raise Misuse(
            "pass two layouts: first the layout that one instruction writes, then the layout that the next instruction "
            "reads"
        )
    written, read = given
    found = _compared(written, read, arguments.loaded)
    if arguments.output:
        _draw(found, Path(arguments.output))
    if arguments.json:
        print_json(_as_json(found))
    else:
        print(found)
    return ACCEPTED if found.equal else REFUSED


def _tiled(given: list[str], arguments: argparse.Namespace) -> int:
    """Print a layout that a tiler divides, or the tile of threads and their values."""
    if len(given) != 1 or arguments.loaded or (arguments.divide and arguments.values):
        raise Misuse(
            "pass one layout with either --divide TILER or --values LAYOUT, such as '(4,8):(1,4)' --divide '<2,4>'"
        )
    try:
        found = _divided(given[0], arguments.divide) if arguments.divide else _covered(given[0], arguments.values)
        if arguments.output:
            _draw_tiles(found, Path(arguments.output))
    except (ImportError, ValueError) as error:
        raise Misuse(str(error)) from None
    words = {name: str(value).replace(" ", "") for name, value in found.items()}
    if arguments.json:
        print_json(words)
    else:
        print_table("", ("value", "layout"), [*words.items()])
    return ACCEPTED


def _divided(layout: str, tiler: str) -> dict[str, object]:
    from ..layouts import logical_divide, zipped_divide

    by = {"layout": layout, "tiler": tiler}
    return by | {each.__name__: each(layout, tiler) for each in (logical_divide, zipped_divide)}


def _covered(threads: str, values: str) -> dict[str, object]:
    from ..layouts import make_layout_tv

    tiler, layout = make_layout_tv(threads, values)
    return {"threads": threads, "values": values, "tiler": tiler, "layout_tv": layout}


def _draw_tiles(found: dict[str, object], path: Path) -> None:
    """Draw the last layout: the offsets of each tile, or the thread and the value of each element."""
    from tensor_layouts import viz

    _check_picture(path)
    *_, (name, layout) = found.items()
    if viz.size(layout) > _MOST_DRAWN:
        raise ValueError(f"{name} has {viz.size(layout)} elements, but a picture has at most {_MOST_DRAWN}")
    if name == "layout_tv":
        viz.draw_tv_layout(layout, str(path), grid_shape=found["tiler"])
    else:
        title = f"{found['layout']} by {found['tiler']}: one tile in each column"
        viz.draw_layout(layout, str(path), title=title, colorize=True, color_layout=_tiles(layout))


def _tiles(layout: Any) -> Any:
    """Return a layout whose offset is the number of the tile."""
    from tensor_layouts import Layout, transform_tuple

    elements, tiles = layout.shape
    return Layout(layout.shape, (transform_tuple(elements, lambda _: 0), Layout(tiles).stride))


def _listed(names: dict[str, str], as_json: bool) -> int:
    if as_json:
        print_json(names)
    else:
        print_table("", ("layout", "description"), [*names.items()])
    return ACCEPTED


def _compared(written: str, read: str, loaded: str | None) -> Comparison:
    from ..layouts import compare

    try:
        return compare(written, read, loaded=loaded)
    except (ImportError, TensorMapError, ValueError) as error:
        raise Misuse(str(error)) from None


def _draw(found: Comparison, path: Path) -> None:
    _check_picture(path)
    try:
        write(path, found.svg())
    except OSError as error:
        raise Misuse(f"--output {path} cannot be written: {error.strerror or error}") from None


def _check_picture(path: Path) -> None:
    if path.suffix != ".svg":
        raise Misuse(f"--output {path} is not the name of an SVG file; end the name in .svg")


def _as_json(found: Comparison) -> dict[str, object]:
    return {
        "written": found.written.name,
        "read": found.read.name,
        "equal": found.equal,
        "words": str(found),
        "fields": {"written": found.written.fields, "read": found.read.fields},
        "elements": [*found.elements()],
    }
