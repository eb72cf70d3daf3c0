"""Tests of the inputs of compile(), of the resulting kernels, and of the conditions under which compile() loads a
stored kernel."""

import gc
import io
import json
import os
import subprocess
import sys
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from cuda import core

import cuda_tma
from cuda_tma import _compile_kernel as door
from cuda_tma._compile import kept, nvrtc, nvrtc_file
from cuda_tma._compile.compiled import compiled_of
from cuda_tma._compile.disk_cache import DiskCache
from tests.support.launching import HANDLES

SOURCE = '#include "size.cuh"\nextern "C" __global__ void k(float* out, int n) { out[n] = SIZE; }'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of the cache, which is next to a header that the source includes."""
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "size.cuh").write_text("#define SIZE 3\n")
    return tmp_path


@pytest.fixture
def compilations(monkeypatch):
    """Return a list to which each request to the compiler is added."""
    asked = []
    run = nvrtc.run
    monkeypatch.setattr(kept, "run", lambda request: asked.append(request) or run(request))
    return asked


def kept_kernel(folder, source=SOURCE, name="k", target="compute_90a", **given):
    options = [f"-I{folder}", *given.pop("options", ())]
    return kept.kept_or_compiled(nvrtc.request(source, name, target=target, options=options, **given))


def entries(folder):
    return sorted((folder / "cache").glob("*.kernel"))


def test_a_kernel_is_compiled_once(folder, compilations, monkeypatch):
    first = kept_kernel(folder)
    monkeypatch.setattr(nvrtc_file, "load", lambda: pytest.fail("NVRTC was loaded"))
    assert kept_kernel(folder) == first and len(compilations) == 1 and len(entries(folder)) == 1
    assert first.lowered_name == "k" and ".entry k(" in first.ptx


def test_every_dependency_of_a_kernel_counts(folder, compilations, tmp_path):
    variants = [
        {}, {"source": SOURCE + " "}, {"defines": {"A": 1}}, {"defines": {"A": 2}}, {"options": ["-G"]},
        {"options": ["--std=c++20"]}, {"target": "compute_90"}, {"constants": {"a": "1"}}, {"constants": {"b": "1"}},
    ]  # fmt: skip
    for variant in [*variants, *variants]:
        kept_kernel(folder, **variant)
    assert len(compilations) == len(variants) == len(entries(folder))


def test_a_header_that_changes_is_compiled(folder, compilations):
    (folder / "size.cuh").write_text('#include "inner.cuh"\n')
    (folder / "inner.cuh").write_text("#define SIZE 4\n")
    texts = [kept_kernel(folder).ptx]
    (folder / "inner.cuh").write_text("#define SIZE 5\n")
    texts += [kept_kernel(folder).ptx, kept_kernel(folder).ptx]
    assert len(compilations) == 2 and texts[0] != texts[1] == texts[2]
    (folder / "inner.cuh").write_text("#define SIZE 4\n")
    assert kept_kernel(folder).ptx == texts[0] and len(compilations) == 2


def test_a_header_that_changes_during_compilation_is_not_kept(folder, monkeypatch):
    run = nvrtc.run

    def change_and_run(request):
        (folder / "size.cuh").write_text("#define SIZE 77\n")
        return run(request)

    monkeypatch.setattr(kept, "run", change_and_run)
    kept_kernel(folder)
    assert entries(folder) == []


def test_an_unknown_header_is_compiled(folder, compilations):
    source = '#define HEADER "size.cuh"\n#include HEADER\nextern "C" __global__ void k() {}'
    kept_kernel(folder, source), kept_kernel(folder, source)
    assert len(compilations) == 2 and not (folder / "cache").exists()


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_broken_entry_is_compiled_again(folder, compilations, content):
    first = kept_kernel(folder)
    (path,) = entries(folder)
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    assert [kept_kernel(folder), kept_kernel(folder)] == [first, first] and len(compilations) == 2


def test_a_failed_compilation_is_not_kept(folder):
    for _ in range(2):
        with pytest.raises(cuda_tma.CompileError, match="does not compile"):
            kept_kernel(folder, SOURCE.replace("SIZE", "nonsense"))
    assert entries(folder) == []


def test_a_folder_that_cannot_be_written_to_is_warned_of(folder, compilations, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("CUDA_TMA_CACHE_DIR", str(folder / "file"))
    with pytest.warns(RuntimeWarning, match="cannot be kept .*CUDA_TMA_CACHE_DIR to another folder") as warned:
        assert kept_kernel(folder).lowered_name == "k"
    assert len(compilations) == len(warned) == 1


def test_without_a_home_it_is_compiled(folder, compilations, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(kept, "cache_folder", no_home)
    with pytest.warns(RuntimeWarning, match="home directory"):
        kept_kernel(folder)
    assert len(compilations) == 1


# ---- the choice of NVRTC ----


def test_another_nvrtc_compiles_again(folder, compilations, monkeypatch):
    library = folder / "libnvrtc.so"
    library.write_bytes(b"12")
    monkeypatch.setattr(nvrtc_file, "_path", lambda: str(library))
    kept_kernel(folder), kept_kernel(folder)
    assert len(compilations) == 1
    library.write_bytes(b"13.0")
    kept_kernel(folder), kept_kernel(folder)
    assert len(compilations) == 2
    os.utime(library, ns=(1, 1))
    kept_kernel(folder)
    library.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The cache stores no kernel when the file of NVRTC is unknown.
        kept_kernel(folder), kept_kernel(folder)
    assert len(compilations) == 5


def test_a_note_is_of_an_environment(folder, monkeypatch):
    disk = DiskCache(folder / "cache")
    library = folder / "libnvrtc.so"
    library.write_bytes(b"12")
    nvrtc_file.note_nvrtc(disk, nvrtc_file.identity_of(str(library)))
    noted = nvrtc_file.noted_nvrtc(disk)
    assert noted == f"{library} 2 {library.stat().st_mtime_ns}"
    with monkeypatch.context() as other:
        other.setenv("LD_LIBRARY_PATH", "/elsewhere")
        assert nvrtc_file.noted_nvrtc(disk) is None
    # A package that the user installs changes sys.path.
    with monkeypatch.context() as other:
        other.setattr(sys, "path", [*sys.path, str(folder / "site-packages")])
        assert nvrtc_file.noted_nvrtc(disk) is None
    assert nvrtc_file.noted_nvrtc(disk) == noted
    (note,) = disk.folder.glob("nvrtc-*.json")
    for content in (b"", b"[]", b'[1, "a 2 3"]', json.dumps([nvrtc_file._installed(), 3]).encode()):
        note.write_bytes(content)
        assert nvrtc_file.noted_nvrtc(disk) is None


def test_kernels_of_two_nvrtc_versions_are_both_kept(folder, compilations, monkeypatch):
    """The test simulates a process in which another library has already loaded its own NVRTC."""
    usual = kept_kernel(folder)
    library = folder / "libnvrtc.so"
    library.write_bytes(b"another")
    monkeypatch.setattr(nvrtc_file, "_path", lambda: str(library))
    for path in entries(folder):
        path.unlink()
    assert kept_kernel(folder) == usual == kept_kernel(folder) and len(compilations) == 2


# ---- several processes ----

PROCESS = f"""
import sys, warnings
warnings.simplefilter("error")
from cuda_tma._compile import kept, nvrtc
asked = nvrtc.request({SOURCE!r}, "k", target="compute_90a", options=["-I" + sys.argv[1]])
sys.stdin.read()
for _ in range(20):
    print(kept.kept_or_compiled(asked).ptx.count(".entry k("))
"""


def test_processes_share_the_cache(folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROCESS, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen(command, **pipes) for _ in range(8)]
    for process in processes:
        process.stdin.close()
        process.stdin = None
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda process: process.communicate()[0], processes)]
    assert answers == ["1\n" * 20] * 8 and [process.returncode for process in processes] == [0] * 8
    assert len(entries(folder)) == 1 and not [*(folder / "cache").glob("*.part")]


CACHED_START = f"""
import sys
from pathlib import Path
from cuda_tma._compile import kept, nvrtc
asked = nvrtc.request({SOURCE!r}, "k", target="compute_90a", options=["-I" + sys.argv[1]])
assert ".entry k(" in kept.kept_or_compiled(asked).ptx
maps = Path("/proc/self/maps")
print("libnvrtc" in maps.read_text() if maps.exists() else False)
print([name for name in sys.modules if name in ("cuda_tma._compile.diagnosis", "cuda_tma._compile.source_text")])
"""


def test_a_start_from_disk_loads_no_compiler(folder):
    kept_kernel(folder)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CACHED_START, str(folder)]
    assert subprocess.run(command, env=environment, capture_output=True, text=True).stdout == "False\n[]\n"


# ---- the kernel ----


@pytest.fixture
def device(monkeypatch, folder):
    """Return a fake device, and the list of the loaded modules."""
    loaded = []

    def from_cubin(cubin, *, name=""):
        kernel = core.Kernel.from_handle(next(HANDLES))
        return SimpleNamespace(get_kernel=lambda lowered: loaded.append((cubin, name, lowered)) or kernel)

    found = SimpleNamespace(compute_capability=(9, 0), loaded=loaded)
    monkeypatch.setattr(door, "Device", lambda: found)
    monkeypatch.setattr(door, "ObjectCode", SimpleNamespace(from_cubin=from_cubin))
    return found


def test_the_kernel_is_of_the_current_device(device, folder):
    source = "template <int N> __global__ void k(float* out) { *out = N + MORE; }"
    for capability, target in (((9, 0), "sm_90a"), ((10, 3), "sm_103a"), ((8, 9), "sm_89")):
        device.compute_capability = capability
        kernel = cuda_tma.compile(source, "k<7>", defines={"MORE": 1}, constants={"twice": "2 * MORE"}, cache=False)
        compiled = compiled_of(kernel)
        assert device.loaded.pop() == (compiled.cubin, "k<7>", "_Z1kILi7EEvPf")
        assert compiled.target == target and compiled.constants == {"twice": 2} and ".entry _Z1kILi7" in compiled.ptx
    assert entries(folder) == []
    assert isinstance(kernel, core.Kernel)


def test_the_kernel_is_kept(device, folder, compilations):
    first, second = (cuda_tma.compile('extern "C" __global__ void k() {}', "k") for _ in range(2))
    assert first is not second and compiled_of(first) == compiled_of(second)
    assert len(compilations) == 1 and len(entries(folder)) == 1


def test_a_deadline_is_a_macro_and_the_kernel_is_armed(device, folder, compilations, monkeypatch):
    """A kernel with a deadline keeps its source for the report of a hang.

    Each kernel with a deadline is compiled again, because each of these kernels needs a separate module."""
    armed = []
    monkeypatch.setattr(door, "arm", lambda *given: armed.append(given))
    source = 'extern "C" __global__ void k() { static_assert(CUDA_TMA_WATCHDOG_MS == 500 && N == 3, ""); }'
    kernels = [cuda_tma.compile(source, "k", watchdog_ms=given, defines={"N": 3}) for given in (500, np.int64(500))]
    assert armed == [(kernel, source, "k.cu", 500) for kernel in kernels] and len(compilations) == 1
    cuda_tma.compile('extern "C" __global__ void k() {}', "k")
    assert len(armed) == 2


def test_remarks_of_the_compiler_are_written_on_request(device, folder, compilations):
    source = 'extern "C" __global__ void k() { int unused; }'
    # The first kernel is compiled, and the second kernel is loaded from disk.
    for _ in range(2):
        logs = io.StringIO()
        cuda_tma.compile(source, "k", logs=logs)
        assert 'k.cu(1): warning #177-D: variable "unused" was declared but never referenced' in logs.getvalue()
    assert len(compilations) == 1


def test_facts_about_a_kernel_are_freed_with_it(device, folder):
    kernel = cuda_tma.compile('extern "C" __global__ void k() {}', "k")
    compiled = weakref.ref(compiled_of(kernel))
    assert compiled().lowered_name == "k" and compiled_of(core.Kernel.from_handle(next(HANDLES))) is None
    del kernel
    gc.collect()
    assert compiled() is None


def test_without_a_driver_an_error_names_it(monkeypatch):
    monkeypatch.setattr(door, "Device", lambda: 1 / 0)
    monkeypatch.setattr(door, "require_driver", lambda: (_ for _ in ()).throw(RuntimeError("no NVIDIA driver")))
    with pytest.raises(RuntimeError, match="no NVIDIA driver"):
        cuda_tma.compile("", "k")
