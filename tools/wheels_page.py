"""docs/wheels.md: how large what was built is, and what it holds."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

KINDS = {
    ".so": "extensions, stripped",
    ".py": "modules",
    ".pyi": "stubs of the extensions",
    ".cuh": "headers for kernels",
    "": "metadata, `py.typed`, the licence",
}
GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)\b")


def wheels_page(packed: list[Path]) -> str:
    wheels = sorted(path for path in packed if path.suffix == ".whl")
    (archive,) = [path for path in packed if path.suffix == ".gz"]
    return "\n".join([*_head(wheels, archive), *_contents(wheels[0]), ""])


def _head(wheels: list[Path], archive: Path) -> Iterable[str]:
    yield "# Wheels"
    yield ""
    yield "What `make wheels` built on one machine, and wrote here. Releases are to have them for CPython 3.10 to"
    yield "3.14 and 3.14t, built in manylinux_2_28 and tagged so; of a Python that is not in the table there was none"
    yield "on that machine. The source distribution, which has the tests and tests itself by `make test`, is"
    yield f"`{archive.name}`: {archive.stat().st_size:,} bytes, {_members(archive)} files."
    yield ""
    yield "| wheel | bytes | unpacked | its extensions | newest symbol of glibc |"
    yield "|---|---:|---:|---:|---|"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as files:
            sizes = [each.file_size for each in files.infolist()]
            extensions = [files.read(name) for name in files.namelist() if name.endswith(".so")]
        yield (
            f"| `{_tags(wheel)}` | {wheel.stat().st_size:,} | {sum(sizes):,} | {sum(map(len, extensions)):,} "
            f"| {newest_glibc(extensions)} |"
        )
    yield ""


def _tags(wheel: Path) -> str:
    return wheel.name.split("-", 2)[2].removesuffix(".whl")


def _members(archive: Path) -> int:
    with tarfile.open(archive) as members:
        return sum(each.isfile() for each in members)


def newest_glibc(extensions: Iterable[bytes]) -> str:
    """The newest version of glibc that a symbol of these is of."""
    versions = {(int(major), int(minor)) for each in extensions for major, minor in GLIBC.findall(each)}
    return ".".join(map(str, max(versions)))


def _contents(wheel: Path) -> Iterable[str]:
    yield "What is in each, no library among it, and no link to one of CUDA's:"
    yield ""
    yield f"| of `{_tags(wheel)}` | files | bytes |"
    yield "|---|---:|---:|"
    kinds = defaultdict(list)
    with zipfile.ZipFile(wheel) as files:
        for each in (each for each in files.infolist() if not each.is_dir()):
            suffix = PurePosixPath(each.filename).suffix
            kinds[suffix if suffix in KINDS else ""].append(each.file_size)
    for suffix, words in KINDS.items():
        yield f"| {words} | {len(kinds[suffix])} | {sum(kinds[suffix]):,} |"
