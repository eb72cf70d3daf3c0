"""What is released: for which Pythons, with which metadata, and what the page of wheels says of them."""

from __future__ import annotations

import io
import re
import runpy
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

import build_wheels  # noqa: E402
import pythons  # noqa: E402
from wheels_page import wheels_page  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOME = "https://example.org/cuda_tma"


def test_the_pythons_are_said_alike():
    gil = [version for version in pythons.VERSIONS if not version.endswith("t")]
    classifiers = [name.rpartition(" :: ")[2] for name in PROJECT["project"]["classifiers"] if " :: 3." in name]
    identifiers = [f"cp{version.replace('.', '')}-*" for version in pythons.VERSIONS]
    assert classifiers == gil
    assert PROJECT["tool"]["cibuildwheel"]["build"] == identifiers
    assert PROJECT["project"]["requires-python"] == f">={gil[0]}"


def test_the_version_is_said_once():
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "cuda_tma.version.__version__"}}
    assert "version" not in PROJECT["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", cuda_tma.__version__)


def test_actions_are_named_by_a_commit():
    """A tag can be moved. PyPA's action is named by the branch that its authors keep for that."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    used = re.findall(r"uses: (\S+)@(.*)$", workflow, re.MULTILINE)
    commits = {name: commit for name, commit in used if name.startswith("actions/")}
    assert {name for name, _ in used} - {*commits} == {"pypa/gh-action-pypi-publish"} and len(commits) == 4
    for name, commit in used:
        if name in commits:
            assert commit == commits[name] and re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", commit)


def test_what_wheels_are_tested_with_is_there():
    """And the sources of the package are not: the wheel is what is tested."""
    settings = PROJECT["tool"]["cibuildwheel"]
    assert [name for name in settings["test-sources"] if not (ROOT / name).exists()] == []
    assert "cuda_tma" not in settings["test-sources"]
    command = settings["test-command"].split()
    assert command[command.index("auto") + 1] in settings["test-sources"]


@pytest.fixture
def metadata(monkeypatch):
    """metadata(home) -> what setup.py gives to setuptools, of which nothing is run."""

    def metadata(home: str) -> dict:
        given = {}
        setuptools = SimpleNamespace(Extension=lambda *_, **__: None, setup=given.update)
        monkeypatch.setitem(sys.modules, "setuptools", setuptools)
        monkeypatch.setitem(sys.modules, "Cython", SimpleNamespace())
        monkeypatch.setitem(sys.modules, "Cython.Build", SimpleNamespace(cythonize=lambda *_, **__: []))
        monkeypatch.setenv("PROJECT_URL", home)
        monkeypatch.chdir(ROOT)
        runpy.run_path("setup.py")
        return given

    return metadata


def test_the_addresses_are_those_of_who_releases(metadata):
    given = metadata(HOME + "/")
    assert given["project_urls"]["Changelog"] == f"{HOME}/blob/main/CHANGELOG.md"
    assert f"[CHANGELOG]({HOME}/blob/main/CHANGELOG.md)" in given["long_description"]
    assert re.findall(r"\]\((?!https?:)", given["long_description"]) == []


def test_who_does_not_say_where_the_repository_is_gets_no_links_to_it(metadata):
    given = metadata("")
    assert given["project_urls"] == {}
    assert "[CHANGELOG]" not in given["long_description"] and "CHANGELOG" in given["long_description"]
    assert re.findall(r"\]\((?!https?:)", given["long_description"]) == []


def test_a_python_is_found_by_version_or_by_path():
    assert pythons.find_python(sys.executable) == sys.executable
    assert pythons.find_python("2.99") is None


def test_an_extension_for_aarch64_has_its_name():
    environ = build_wheels.aarch64_environment(sys.executable)
    assert re.fullmatch(r"\.cpython-\d+t?-aarch64-linux-gnu\.so", environ["SETUPTOOLS_EXT_SUFFIX"])
    assert environ["CC"] == "aarch64-linux-gnu-gcc"


def test_the_page_says_what_wheels_hold(tmp_path):
    archive, wheel = tmp_path / "cuda_tma-1.tar.gz", tmp_path / "cuda_tma-1-cp312-cp312-manylinux_2_17_x86_64.whl"
    with tarfile.open(archive, "w:gz") as members:
        for name in ("a", "b"):
            members.addfile(tarfile.TarInfo(name), io.BytesIO())
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("cuda_tma/a.so", b"GLIBC_2.4\0GLIBC_2.17\0GLIBC_PRIVATE\0")
        files.writestr("cuda_tma/a.pyi", b"12345")
        files.writestr("cuda_tma/py.typed", b"")
        files.writestr("cuda_tma-1.dist-info/METADATA", b"123")
    page = wheels_page([archive, wheel])
    assert f"`cuda_tma-1.tar.gz`: {archive.stat().st_size:,} bytes, 2 files." in page
    assert f"| `cp312-cp312-manylinux_2_17_x86_64` | {wheel.stat().st_size:,} | 43 | 35 | 2.17 |" in page
    assert page.endswith(
        "| extensions, stripped | 1 | 35 |\n| modules | 0 | 0 |\n| stubs of the extensions | 1 | 5 |\n"
        "| headers for kernels | 0 | 0 |\n| metadata, `py.typed`, the licence | 2 | 3 |\n"
    )
