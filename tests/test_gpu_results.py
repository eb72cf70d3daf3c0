"""Tests that the record of the GPU tests matches the present source, or lists the changes since."""

import dataclasses
import subprocess
import sys

import pytest

from .gpu import results

PART = results.Part(
    ["commit: 1234abc"],
    ["test_a.py"],
    {"passed": 3, "xfailed": 1},
    ["tiles: 7 loads"],
    [results.Launch("k", ".entry", ""), results.Launch("k", ".entry", ""), results.Launch("l", None, "it has no PTX")],
    ["tests/gpu/test_a.py::test_b"],
)
TEXT = results.report(PART)


def test_the_record_is_of_this_source():
    if results.git("rev-parse", "--show-toplevel") != str(results.ROOT):
        pytest.skip("there is no git history of the changes")
    if results.git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone lacks the history of the changes")
    text = results.RESULTS.read_text()
    name = results.named_commit(text)
    assert not name.endswith("-dirty"), "RESULTS.md was recorded with changes that are in no commit"
    assert results.git("merge-base", "--is-ancestor", name, "HEAD") is not None, f"{name} is not an ancestor of HEAD"
    remedy = "run tools/gpu.sh on a GPU, or list the changes in RESULTS.md: python -m tests.gpu.results"
    assert results.named_changes(text) == results.changed_since(name), remedy


def test_the_record_lists_the_runs():
    assert TEXT.splitlines()[4:] == [
        "- commit: 1234abc",
        "- passed: 3, failed: 0, error: 0, skipped: 0, xfailed: 1, xpassed: 0",
        "- tiles: 7 loads",
        "- 2 launches of 1 kernels of tests/gpu left the same bytes on the GPU and on the simulator, "
        "started from the same memory",
        "- not on the simulator: l: it has no PTX",
        "- FAILED tests/gpu/test_a.py::test_b",
    ]
    assert results.named_commit(TEXT) == "1234abc"
    assert results.named_changes(TEXT) == []


def test_changes_are_listed_and_removed():
    text = results.with_changes(TEXT, ["cuda_tma/a.pyx", "tests/gpu/test_b.py"])
    assert results.named_changes(text) == ["cuda_tma/a.pyx", "tests/gpu/test_b.py"]
    assert results.named_changes(results.with_changes(text, ["cuda_tma/c.py"])) == ["cuda_tma/c.py"]
    assert results.with_changes(text, []) == TEXT


FILES = {path.name for path in results.FOLDER.glob("test_*.py")}


@pytest.mark.parametrize(
    ("run", "whole"),
    [
        ((FILES, 5, 5, 0, ["tests/gpu"]), True),
        ((FILES - {"test_tiles.py"}, 5, 5, 0, ["tests/gpu"]), False),
        # The option -x of pytest ended this run early.
        ((FILES, 5, 4, 0, ["tests/gpu"]), False),
        # The option -k of pytest deselected one test of this run.
        ((FILES, 5, 5, 1, ["tests/gpu"]), False),
        ((FILES, 5, 5, 0, ["tests/gpu", "tests/gpu/test_tiles.py::test_one"]), False),
    ],
)
def test_a_part_of_the_files_is_not_a_complete_record(run, whole):
    assert (results.missing(results.Part([], results.ended_files(*run), {})) == []) is whole


def test_parts_are_one_record_together(tmp_path, monkeypatch):
    """The parts of a GPU record have the same commit and machine, and different tests. A test file that is in no part
    is missing."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    rest = dataclasses.replace(PART, files=sorted(FILES), counts={"passed": 4, "failed": 1}, failed=["tests/gpu/c"])
    for name, part in (("a", dataclasses.replace(PART, facts=["date: 1", *PART.facts])), ("b", rest)):
        (tmp_path / name).write_text(part.to_json())
    monkeypatch.setattr(sys, "argv", ["results", "write", str(tmp_path / "a"), str(tmp_path / "b")])
    results.main()
    text = results.RESULTS.read_text()
    assert "- date: 1\n- commit: 1234abc\n- passed: 7, failed: 1, error: 0, skipped: 0, xfailed: 1" in text
    assert "- 4 launches of 1 kernels" in text and "test_b\n- FAILED tests/gpu/c\n" in text
    with pytest.raises(ValueError, match="several parts have the tests of test_a.py"):
        results.together([PART, PART])
    with pytest.raises(ValueError, match="not of one commit"):
        results.together([PART, dataclasses.replace(rest, facts=["commit: 5"])])
    sys.argv.pop()
    with pytest.raises(SystemExit, match=r"RESULTS.md stays as it is: without test_array.py, "):
        results.main()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a git repository with two files; RESULTS.md covers one of the files."""
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.delenv("CUDA_TMA_COMMIT", raising=False)
    for name in ("cuda_tma/a.py", "docs/b.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_only_measured_files_count_as_changed(repository):
    name = results.commit()
    assert name == results.git("rev-parse", "--short", "HEAD")
    assert results.changed_since(name) == []
    (repository / "docs/b.md").write_text("2\n")
    assert results.commit() == name and results.changed_since(name) == []
    (repository / "cuda_tma/a.py").write_text("2\n")
    assert results.commit() == f"{name}-dirty" and results.changed_since(name) == ["cuda_tma/a.py"]
    assert results.changed_since("0000000") is None


def test_a_new_file_is_a_change_that_no_commit_has(repository):
    (repository / "cuda_tma/new.py").write_text("1\n")
    assert results.commit().endswith("-dirty")


def test_the_commit_is_given_without_git(repository, monkeypatch):
    monkeypatch.setenv("CUDA_TMA_COMMIT", "feed123")
    assert results.commit() == "feed123"
