"""Tests of the Python versions, the metadata and the workflows of a release."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma
from tests.support import pythons

ROOT = Path(__file__).parent.parent
if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOME = "https://example.org/cuda_tma"


def test_the_pythons_are_listed_alike():
    gil = [version for version in pythons.VERSIONS if not version.endswith("t")]
    classifiers = [name.rpartition(" :: ")[2] for name in PROJECT["project"]["classifiers"] if " :: 3." in name]
    identifiers = [f"cp{version.replace('.', '')}-*" for version in pythons.VERSIONS]
    assert classifiers == gil
    assert PROJECT["tool"]["cibuildwheel"]["build"] == identifiers
    assert PROJECT["project"]["requires-python"] == f">={gil[0]}"


def test_the_version_is_stated_once():
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "cuda_tma._version.__version__"}}
    assert "version" not in PROJECT["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", cuda_tma.__version__)


WORKFLOWS = ROOT / ".github" / "workflows"


def test_actions_are_named_by_a_commit():
    """Workflows name each action by a commit, because a tag can be moved. The action of PyPA is an exception, whose
    authors recommend a branch."""
    used = [
        found
        for workflow in sorted(WORKFLOWS.glob("*.yml"))
        for found in re.findall(r"uses: (\S+)@(.*)$", workflow.read_text(), re.MULTILINE)
    ]
    commits = {name: commit for name, commit in used if name.startswith("actions/")}
    assert {name for name, _ in used} - {*commits} == {"pypa/gh-action-pypi-publish"} and len(commits) == 4
    for name, commit in used:
        if name in commits:
            assert commit == commits[name] and re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", commit)


def test_a_pull_request_is_tested_on_each_python():
    workflow = (WORKFLOWS / "pull-request.yml").read_text()
    (versions,) = re.findall(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)
    assert tuple(version.strip('"') for version in versions.split(", ")) == pythons.VERSIONS
    assert re.findall(r"- run: make ([\w-]+)", workflow) == ["check", "test", "test-beside"]


def test_test_files_of_wheels_exist():
    """The tests of a wheel run in a folder without the sources of the package, so that they use the wheel."""
    settings = PROJECT["tool"]["cibuildwheel"]
    assert [name for name in settings["test-sources"] if not (ROOT / name).exists()] == []
    assert "cuda_tma" not in settings["test-sources"]
    command = settings["test-command"].split()
    assert command[command.index("auto") + 1] in settings["test-sources"]


@pytest.fixture
def metadata(monkeypatch):
    """Return a function that returns the arguments of setup.py to setuptools, without a build."""

    def metadata(home: str) -> dict:
        given = {}
        setuptools = SimpleNamespace(Extension=lambda *_, **__: None, setup=lambda **values: given.update(values))
        monkeypatch.setitem(sys.modules, "setuptools", setuptools)
        for name in ("setuptools.command", "setuptools.command.build_ext"):
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(build_ext=object))
        monkeypatch.setitem(sys.modules, "Cython", SimpleNamespace())
        monkeypatch.setitem(sys.modules, "Cython.Build", SimpleNamespace(cythonize=lambda *_, **__: []))
        monkeypatch.setenv("PROJECT_URL", home)
        monkeypatch.chdir(ROOT)
        runpy.run_path("setup.py", run_name="__main__")
        return given

    return metadata


def test_the_addresses_are_those_of_the_releasing_thread(metadata):
    given = metadata(HOME + "/")
    assert given["project_urls"]["Changelog"] == f"{HOME}/blob/main/CHANGELOG.md"
    assert f"[CHANGELOG]({HOME}/blob/main/CHANGELOG.md)" in given["long_description"]
    assert re.findall(r"\]\((?!https?:)", given["long_description"]) == []


def test_without_a_repository_address_there_are_no_links(metadata):
    given = metadata("")
    assert given["project_urls"] == {}
    assert "[CHANGELOG]" not in given["long_description"] and "CHANGELOG" in given["long_description"]
    assert re.findall(r"\]\((?!https?:)", given["long_description"]) == []


def test_a_python_is_found_by_version_or_by_path():
    assert pythons.find_python(sys.executable) == sys.executable
    assert pythons.find_python("2.99") is None
