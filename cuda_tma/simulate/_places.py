"""The order of a finding's source lines, in which the user's statement precedes the lines of device headers."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Collection, Sequence
from pathlib import Path

from .._include_path import include_path
from ._ptx import Place

__all__ = ["by_way_of", "is_library", "statements"]


def is_library(file: str) -> bool:
    """Return whether a file belongs to the device header, an installed package, the CUDA toolkit, or Python itself."""
    if file.startswith(_LIBRARIES):
        return True
    path = file.replace("\\", "/")
    return not {"site-packages", "dist-packages"}.isdisjoint(path.split("/")) or bool(_TOOLKIT.search(path))


# The pattern matches the headers of an installed CUDA toolkit, including those of libcu++ and CUB in the folder cccl.
_TOOLKIT = re.compile(r"/(?:cuda(?:-[0-9.]+)?(?:/targets/[^/]+)?/include|include/cccl)/")
_LIBRARIES = tuple(os.path.join(folder, "") for folder in (include_path(), sysconfig.get_path("stdlib")))


def statements(places: Sequence[Place], generated: Collection[str] = ()) -> tuple[list[Place], list[Place]]:
    """Divide the places in a chain of inlined calls into the user's source and library code.

    The device header is a library. The files in `generated`, which a compiler has generated, count as libraries. If the
    whole chain is in libraries, the outermost place of the chain counts as the user's source.
    """
    own = [place for place in places if not is_library(place.file) and place.file not in generated]
    return (own, [place for place in places if place not in own]) if own else (list(places[-1:]), list(places[:-1]))


def by_way_of(inner: Sequence[Place]) -> str:
    """Return a text that lists the places of library code between the user's statement and the instruction."""
    names = ", ".join(f"{Path(place.file).name}:{place.line}" for place in reversed(inner))
    return f", by way of {names}" if names else ""
