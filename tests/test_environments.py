"""Tests of the source distribution, and of wheels built from it, in new environments.

The tests need the package index and a C compiler, and take minutes: ``make test-environments``.
"""

import ctypes
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.pythons import VERSIONS, find_python

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow

# The same wheel is tested with the oldest and newest cuda-bindings 12.9 and 13, and the oldest and newest cuda-core 1.
# cuda-core 1.0.0 cannot be imported with cuda-bindings 13.0.0 to 13.1.0, which lack cuDevSmResourceSplit.
PEERS = {
    "bindings 12.9.0, core 1.0.0": ("cuda-bindings==12.9.0", "cuda-core==1.0.0", "numpy==1.26.*"),
    "last bindings 12, core 1.0.0": ("cuda-bindings==12.*", "cuda-core==1.0.0"),
    "last bindings 12, last core 1": ("cuda-bindings==12.*", "cuda-core==1.*"),
    "bindings 13.0.0, last core 1": ("cuda-bindings==13.0.0", "cuda-core==1.*"),
    "bindings 13.1.1, core 1.0.0": ("cuda-bindings==13.1.1", "cuda-core==1.0.0"),
    "last bindings 13, last core 1": ("cuda-bindings==13.*", "cuda-core==1.*"),
}
# The table contains runtimes whose scripts run on the driver library of `cuda-tma sanitize`.
RUNTIMES = {
    "numba": ("numba-cuda[cu13]==0.30.4",),
    "cupy": ("cupy-cuda13x==14.2.0", *(f"nvidia-cuda-{each}==13.*" for each in ("nvrtc", "runtime", "cccl"))),
    "cute": (
        "nvidia-cutlass-dsl==4.8.1",
        "torch==2.13.0+cpu",
        "--extra-index-url=https://download.pytorch.org/whl/cpu",
    ),
}
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}{sys.abiflags}"
OTHER_PYTHONS = [version for version in VERSIONS if version != RUNNING]

# The tuples contain tests on the fake driver, fast tests that need only NumPy, and doctests.
EXTENSION_TESTS = (
    *(f"test_{each}.py" for each in ("tensor_map", "tensor_map_im2col", "kernel_arg", "options")),
    "_read/test_reading.py",
)
PURE_TESTS = ("codec/test_codec.py", "rules/test_explain.py", "codec/test_diff.py", "smem/test_swizzle.py")
EXTRAS = (
    "_show/plot",
    "_show/divide",
    "layouts/_cute",
    "layouts/_tilers",
    "torch/*",
    *(f"_intercept/{each}/*" for each in ("torch", "triton", "tilelang")),
)
WITHOUT_EXTRAS = tuple(f"--ignore-glob=*/{each}.py" for each in EXTRAS)
DOCTESTS = ("--doctest-modules", *WITHOUT_EXTRAS, "--pyargs", "cuda_tma")
RUNNERS = ("pytest", "hypothesis", "ml_dtypes")

PROBE = """
import json, sys
sys.modules |= {"ml_dtypes": None, "rich": None, "matplotlib": None}  # as if not installed
import numpy, cuda_tma
array = numpy.zeros((8, 8), numpy.float32)
try:
    cuda_tma.create_tensor_map(array, box_dim=(4, 4))
except Exception as error:
    message = f"{type(error).__name__}: {error}"
print(json.dumps({"file": cuda_tma.__file__, "message": message}))
"""

# A compiler or Python could find CUDA or the source tree with the variables in this set.
HIDDEN = {"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "PYTHONPATH", "CFLAGS", "LDFLAGS"}
ENVIRON = {name: value for name, value in os.environ.items() if name not in HIDDEN}


def run(*command, **keywords):
    """Return the command's output. If the command fails, raise an error with its output."""
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRON, **keywords)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-5000:]}\n{result.stderr[-5000:]}"
    return result.stdout


def pip(python, *arguments):
    """Run the pip of the test's environment for another Python, which may not have pip."""
    return run(sys.executable, "-m", "pip", "--python", python, *arguments)


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def unpack_source_distribution(folder):
    """Make the source distribution from a copy of the repository, so that it contains no files of earlier builds, and
    return its folder.

    The source distribution contains Cython's C files, so that a build of a wheel need not translate the sources again.
    """
    copy, packed = folder / "copy", folder / "packed"
    leftovers = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", "build", "dist", "*.so", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, copy, ignore=leftovers)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", packed, copy)
    (archive,) = packed.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    sources = folder / archive.name.removesuffix(".tar.gz")
    shutil.copytree(copy / "build", sources / "build")
    return sources


def build_wheel(python, folder, sources):
    own_sources = folder / "sources"
    shutil.copytree(sources, own_sources)
    pip(python, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, own_sources)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(python, folder, *requirements):
    run(python, "-m", "venv", "--without-pip", folder)
    own = folder / "bin" / "python"
    pip(own, "install", "--quiet", "--no-compile", *requirements)
    return own


def try_wheel(python, folder, sources, wheel, peers, modules, *options):
    """Install the wheel and the packages of a trial, run a few probes, and run test modules of the source distribution.

    Returns
    -------
    dict
        The results of PROBE, and the last line of pytest.
    """
    own = make_environment(python, folder, wheel, *peers, *RUNNERS)
    found = json.loads(run(own, "-c", PROBE, cwd=folder))
    found["check"] = subprocess.run(
        [own, "-m", "cuda_tma", "check", "--shape", "128x1733", "--box", "32x32"],
        capture_output=True, text=True, env=ENVIRON, cwd=folder,
    ).stdout  # fmt: skip
    found["demo"] = run(own, "-m", "cuda_tma", "demo", "--output", folder / "demo.png", cwd=folder)
    # The tests read files in the four folders.
    for name in ("tests", "examples", "docs", "evaluation"):
        shutil.copytree(sources / name, folder / name, ignore=shutil.ignore_patterns("gpu"))
    shutil.copy(sources / "README.md", folder)
    report = run(own, "-m", "pytest", "-q", *[f"tests/{module}" for module in modules], *options, cwd=folder)
    return found | {"report": report.splitlines()[-1]}


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """Return a pool of two workers that run tasks in order. A task is requested after each task for which it waits."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", tmp_path_factory.mktemp("index"), "pip"]
    asked = subprocess.run(command, capture_output=True, text=True, env=ENVIRON)
    if asked.returncode:
        pytest.skip(f"the package index cannot be reached: {asked.stderr.strip().splitlines()[-1]}")
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def sources(pool, tmp_path_factory):
    """Return a future of the source distribution's folder."""
    return pool.submit(unpack_source_distribution, tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def wheel(pool, sources, tmp_path_factory):
    """Return a future of the wheel that the running Python builds."""
    folder = tmp_path_factory.mktemp("wheel")
    return pool.submit(lambda: build_wheel(sys.executable, folder, sources.result()))


@pytest.fixture(scope="module")
def trials(request, pool, sources, wheel, tmp_path_factory):
    """Start every requested trial at once, and return a mapping from its name to a future of the result of
    :func:`try_wheel`."""
    wanted = {item.callspec.id for item in request.session.items if "trials" in getattr(item, "fixturenames", ())}

    def try_python(python):
        folder, unpacked = tmp_path_factory.mktemp("python"), sources.result()
        own_wheel = build_wheel(python, folder, unpacked)
        modules = EXTENSION_TESTS + PURE_TESTS
        # Doctests compile kernels.
        return try_wheel(python, folder / "venv", unpacked, own_wheel, ("nvidia-cuda-nvrtc",), modules, *DOCTESTS)

    def try_peers(peers):
        folder = tmp_path_factory.mktemp("peers")
        return try_wheel(sys.executable, folder, sources.result(), wheel.result(), peers, EXTENSION_TESTS)

    pythons = {version: find_python(version) for version in OTHER_PYTHONS if version in wanted}
    return {version: pool.submit(try_python, python) for version, python in pythons.items() if python} | {
        name: pool.submit(try_peers, peers) for name, peers in PEERS.items() if name in wanted
    }


def test_programs_of_nvcc(wheel, sources, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    own = make_environment(sys.executable, tmp_path / "venv", wheel.result(), *RUNNERS)
    shutil.copytree(sources.result() / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("gpu"))
    module = "tests/_intercept/driver/test_runtimes.py"
    report = run(own, "-m", "pytest", "-q", "-m", "slow", module, cwd=tmp_path).splitlines()[-1]
    assert re.match(r"\d+ passed", report) and "skipped" not in report


@pytest.mark.parametrize("name", RUNTIMES)
def test_scripts_of_a_runtime(name, sources, wheel, tmp_path):
    if name == "cute" and "CUDA_TMA_ALL_RUNTIMES" not in os.environ:
        pytest.skip("CuTe DSL takes four minutes: set CUDA_TMA_ALL_RUNTIMES=1")
    own = make_environment(sys.executable, tmp_path / "venv", wheel.result(), *RUNTIMES[name], *RUNNERS)
    shutil.copytree(sources.result() / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("gpu"))
    module = "tests/_intercept/driver/test_runtimes.py"
    report = run(own, "-m", "pytest", "-q", "-k", f"{name}/", module, cwd=tmp_path).splitlines()[-1]
    assert re.fullmatch(r"\d+ passed.*", report) and "skipped" not in report


def require_sound(found):
    assert "site-packages" in found["file"]
    assert "1736" in found["check"] and "refused: 1 rule broken" in found["check"]
    assert found["demo"].endswith("every pixel is equal to NumPy's\n")
    assert re.fullmatch(r"\d+ passed.*", found["report"]) and "failed" not in found["report"]
    if not has_driver():
        assert re.match("RuntimeError: no NVIDIA driver was found, and making .* a tensor map", found["message"])


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_another_python(trials, version):
    if version not in trials:
        pytest.skip(f"no Python {version} was found on this machine")
    require_sound(trials[version].result())


@pytest.mark.parametrize("name", PEERS)
def test_one_wheel_for_all_peers(trials, name):
    require_sound(trials[name].result())


def test_the_source_distribution_is_the_repository(sources):
    """The source distribution contains the tests and all files that they read. Each trial runs the tests of the source
    distribution."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("there is no git history with the repository's files")
    packed = {path.relative_to(sources.result()).as_posix() for path in sources.result().rglob("*") if path.is_file()}
    assert {name for name in listed.stdout.splitlines() if (ROOT / name).exists()} - packed == set()


def test_content_of_the_wheel(wheel):
    names = zipfile.ZipFile(wheel.result()).namelist()
    package = {name.removeprefix("cuda_tma/") for name in names if name.startswith("cuda_tma/")}
    extensions = {name.partition(".")[0] for name in package if name.endswith(".so")}
    compiled = {name_in_package(path.with_suffix("")) for path in (ROOT / "cuda_tma").rglob("*.pyx")}
    assert extensions == {*compiled, "_intercept/libcuda/libcuda", "_intercept/on_gpu/library/libongpu"}
    assert {name_in_package(path) for path in (ROOT / "cuda_tma").rglob("*.pyi")} <= package
    assert {"py.typed", "include/cuda_tma/tma.cuh"} <= package
    assert {Path(name).suffix for name in package} == {".py", ".pyi", ".so", ".typed", ".cuh", ".html", ".js"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"cuda_tma", "pytest_cuda_tma.py"}


def name_in_package(path):
    return path.relative_to(ROOT / "cuda_tma").as_posix()


def test_metadata_for_an_index(wheel):
    """The metadata contain the license, and a description without links to files that the package index does not
    have."""
    with zipfile.ZipFile(wheel.result()) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(packed.read(name))
    classifiers = metadata.get_all("Classifier")
    assert {f"Programming Language :: Python :: {version.rstrip('t')}" for version in VERSIONS} <= set(classifiers)
    assert {"Operating System :: POSIX :: Linux", "Typing :: Typed"} <= set(classifiers)
    assert metadata["Author"] and metadata["Keywords"] and metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"dtypes", "cli", "plot", "layout", "nvrtc", "examples", "test", "check"} <= extras
    description = metadata.get_payload()
    assert description.startswith("# cuda_tma") and "](https://" in description
    assert re.findall(r"\]\((?!https?:)[^)]*\)", description) == []


NAMED_LIBRARIES = {  # For each library of the package, the table contains the names of CUDA libraries in its file.
    "cuda_tma/_intercept/libcuda/libcuda.so": {b"libcuda.so", b"libcudart.so"},
    "cuda_tma/_intercept/on_gpu/library/libongpu.so": {b"libcuda.so", b"libnvrtc.so"},
}


def test_the_wheel_needs_no_cuda_library(wheel):
    with zipfile.ZipFile(wheel.result()) as packed:
        for name in packed.namelist():
            if name.endswith(".so"):
                named = set(re.findall(rb"lib(?:cuda|cudart|nvrtc)\.so", packed.read(name)))
                assert named == NAMED_LIBRARIES.get(name, set()), name


def test_building_needs_no_cuda_header():
    included = set()
    for path in (ROOT / "cuda_tma").rglob("*.p[yx][xd]"):
        included |= set(re.findall(r'cdef extern from "([^"]*)"', path.read_text()))
    # The header sums.h belongs to this package.
    assert included == {"Python.h", "sums.h"}
