"""The script that puts faults into the package, tried on a small package of its own."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import mutate
from mutants import is_other_program, mutants_of

PYTHON = '''"""A text with 1 < 2 and not True."""

TABLE = {1: 2}
LIMIT = 16


@cache(3)
def clamp(value: "1 < 2", low=0):
    """Another: 3 + 4."""
    if value is not None and value >= LIMIT:  # 5 > 6
        raise ValueError(f"{value + 1} == 2")
    note(value, low)
    return "é" + str(-value)
'''

CYTHON = '''"""A text with 1 < 2."""
cdef extern from "x.h":
    int three "3 + 3"

cdef int LIMIT = 4


cdef int clamp(object value, int* low, size_t size=1) except? -1:
    """Another: 3 + 4."""
    cdef int out = <int>value * 2
    cdef long other
    if value is not None and low[0] < out:  # 5 > 6
        raise ValueError(f"{value + 1} == 2")
    for i in range(2, out):
        note(&out, low)
    return <object?>low if True else -1LL
'''


def words(path, text):
    return [f"{mutant.line}: {mutant.what}" for mutant in mutants_of(path, text) if is_other_program(mutant, text)]


def test_the_mutants_of_python():
    assert words("a.py", PYTHON) == [
        "4: 16 -> 15",
        "4: 16 -> 17",
        "8: 0 -> -1",
        "8: 0 -> 1",
        "10: value is not None and value >= LIMIT -> not (value is not None and value >= LIMIT)",
        "10: is not -> is",
        "10: and -> or",
        "10: >= -> <",
        "10: >= -> >",
        '11: raise ValueError(f"{value + 1} == 2") -> pass',
        "12: note(value, low) -> pass",
        "12: value, low -> low, value",
        '13: "é" + str(-value) -> None',
        "13: - -> nothing",
    ]


def test_the_mutants_of_cython():
    assert words("a.pyx", CYTHON) == [
        "10: * -> +",
        "10: 2 -> 1",
        "10: 2 -> 3",
        "12: value is not None and low[0] < out -> not (value is not None and low[0] < out)",
        "12: is not -> is",
        "12: and -> or",
        "12: 0 -> (-1)",
        "12: 0 -> 1",
        "12: < -> <=",
        "12: < -> >=",
        '13: raise ValueError(f"{value + 1} == 2") -> pass',
        "14: 2 -> 1",
        "14: 2 -> 3",
        "14: 2, out -> out, 2",
        "15: note(&out, low) -> pass",
        "15: &out, low -> low, &out",
        "16: return <object?>low if True else -1LL -> pass",
        "16: True -> False",
        "16: 1 -> 0",
        "16: 1 -> 2",
    ]


def test_everything_else_stays_as_it_was():
    for mutant in mutants_of("a.py", PYTHON):
        mutated = mutant.apply(PYTHON)
        assert mutated.startswith(PYTHON[: mutant.start]) and mutated.endswith(PYTHON[mutant.end :])
        assert ast.parse(mutated)


PACKAGE = {
    "small/__init__.py": "",
    "small/sums.py": "def total(a, b):\n    unused = 1\n    return a + b\n",
    "small/loops.py": "def count(n):\n    while n > 0:\n        n -= 1\n    return n\n",
    "tests/test_sums.py": "from small import sums\ndef test_total(): assert sums.total(2, 1) == 3\n",
    "tests/test_loops.py": "from small import loops\ndef test_count(): assert loops.count(2) == 0\n",
    "tests/test_other.py": "def test_other(): pass\n",
}


@pytest.fixture
def repository(tmp_path):
    for name, text in PACKAGE.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "repository", check=True)
    return tmp_path / "repository"


def tree_of(repository, **more):
    files = ("tests/test_loops.py", "tests/test_other.py", "tests/test_sums.py")
    return mutate.Tree(repository, "small", seconds=dict.fromkeys(files, 0.1), **more)


def test_one_mutant_of_each_line_is_drawn_in_an_order_of_the_seed(repository):
    tree = tree_of(repository)
    drawn = list(mutate.draw(tree, 1))
    assert drawn == list(mutate.draw(tree, 1)) != list(mutate.draw(tree, 2))
    places = [(mutant.path, mutant.line) for _, mutant in drawn]
    assert sorted(places) == [("small/loops.py", n) for n in (2, 3, 4)] + [("small/sums.py", n) for n in (2, 3)]


def test_the_likely_tests_are_those_that_name_the_module(repository):
    tree = tree_of(repository)
    mutant = next(mutant for _, mutant in mutate.draw(tree, 1) if mutant.path == "small/sums.py")
    assert mutate.likely(tree, mutant, []) == ["tests/test_sums.py"]
    noticed = {"path": "small/sums.py", "by": "tests/test_other.py::test_other"}
    assert mutate.likely(tree, mutant, [noticed] * 2) == ["tests/test_other.py", "tests/test_sums.py"]


def mutant_of(repository, path, what):
    (mutant,) = (mutant for mutant in mutants_of(path, (repository / path).read_text()) if mutant.what == what)
    return mutant


@pytest.mark.parametrize(
    ("path", "what", "first", "expected"),
    [
        ("small/sums.py", "+ -> -", ["tests/test_sums.py"], ("killed", "tests/test_sums.py::test_total")),
        ("small/sums.py", "+ -> -", ["tests/test_other.py"], ("killed", "tests/test_sums.py::test_total")),
        ("small/sums.py", "unused = 1 -> pass", ["tests/test_sums.py"], ("survived", "")),
        ("small/loops.py", "n -= 1 -> pass", ["tests/test_loops.py"], ("timeout", "")),
    ],
)
def test_what_becomes_of_a_mutant(repository, path, what, first, expected):
    before = (repository / path).read_text()
    tree = tree_of(repository, timeout=2 if expected[0] == "timeout" else 60)
    found = mutate.outcome(tree, mutant_of(repository, path, what), first)
    assert (found["outcome"], found["by"]) == expected
    assert (repository / path).read_text() == before


def test_a_process_cannot_take_all_memory(tmp_path):
    program = "import sys, time; time.sleep(0.2); bytearray(9 << 30)"
    status, output = mutate.command([sys.executable, "-c", program], tmp_path, 60)
    assert status == 1 and "MemoryError" in output


def test_what_does_not_compile_is_drawn_again(repository, monkeypatch):
    (repository / "small" / "more.pyx").write_text("def f():\n    return 1 + 2\n")
    monkeypatch.setattr(mutate, "build", lambda root: (1, "refused"))
    found = mutate.outcome(tree_of(repository), mutant_of(repository, "small/more.pyx", "+ -> -"), [])
    assert found == {"outcome": "does not compile", "by": ""}
    assert mutate.tried([found]) == []


def test_a_run_is_written_and_goes_on_where_it_was(repository, tmp_path, monkeypatch, capsys):
    asked = []

    def outcome(tree, mutant, first):
        asked.append(mutant.line)
        return {"outcome": "survived" if mutant.path == "small/sums.py" else "killed", "by": ""}

    monkeypatch.setattr(mutate, "measure", lambda tree: tree.seconds.update({"tests/test_sums.py": 0.1}))
    monkeypatch.setattr(mutate, "outcome", outcome)
    output = tmp_path / "mutants.jsonl"
    arguments = ["run", "--seed", "1", "--output", str(output), "--root", str(repository), "--package", "small"]
    mutate.main([*arguments, "--count", "2"])
    assert len(asked) == 2 and json.loads(output.read_text().splitlines()[0])["seed"] == 1
    mutate.main([*arguments, "--count", "100"])
    assert len(asked) == 5 and len({row["id"] for row in mutate.read(output)[1]}) == 5
    assert "caught of those that these tests could tell: 3/5, 60.0%" in capsys.readouterr().out

    mutate.main(["show", str(output), "--root", str(repository)])
    shown = capsys.readouterr().out
    assert shown.count("--- small/sums.py") == 2 and "+++ mutant " in shown and "-    unused = 1" in shown

    survivor = next(row["id"] for row in mutate.read(output)[1] if row["outcome"] == "survived")
    (tmp_path / "verdicts").write_text(f"{survivor} equivalent: nobody reads it\n")
    mutate.main(["summary", str(output), "--verdicts", str(tmp_path / "verdicts")])
    assert "3/4, 75.0%" in capsys.readouterr().out

    (repository / "small" / "sums.py").write_text("total = 1\n")
    with pytest.raises(SystemExit, match="of other sources"):
        mutate.main([*arguments, "--count", "2"])


@pytest.mark.parametrize("line", ["12 equal: both are 0", "equivalent: 12", "12 gpu:"])
def test_a_verdict_has_a_reason(line):
    with pytest.raises(SystemExit, match="no verdict"):
        mutate.verdicts_in(line)


def test_a_verdict_is_of_a_survivor(tmp_path):
    (tmp_path / "results").write_text('{"seed": 1}\n')
    (tmp_path / "verdicts").write_text("12 gpu: a launch\n")
    with pytest.raises(SystemExit, match=r"not among the survivors: \[12\]"):
        mutate.summary(tmp_path / "results", tmp_path / "verdicts")


def test_a_tree_that_fails_by_itself_is_refused(repository):
    (repository / "tests" / "test_other.py").write_text("def test_other(): assert 0\n")
    with pytest.raises(SystemExit, match="the tests fail without any mutant"):
        mutate.measure(mutate.Tree(repository, "small"))


def test_the_tree_is_measured(repository):
    tree = mutate.Tree(repository, "small")
    mutate.measure(tree)
    assert sorted(tree.seconds) == ["tests/test_loops.py", "tests/test_other.py", "tests/test_sums.py"]
