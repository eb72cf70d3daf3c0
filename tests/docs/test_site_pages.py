"""Tests of the documentation pages. Each code block prints the shown output, and the index links each page and public
name once."""

import re
import sys
from pathlib import Path

import pytest

import cuda_tma
from cuda_tma import _cuda_errors

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import error_pages  # noqa: E402
import header_pages  # noqa: E402
import pages  # noqa: E402

DOCS = ROOT / "docs"
NAMES = [page.relative_to(DOCS).as_posix() for page in pages.PAGES]
TOCTREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)*\n?(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_print_the_shown_output(name, tmp_path):
    text = (DOCS / name).read_text()
    wrong = [words for ran in pages.run(text, tmp_path, name) if (words := pages.compare(ran))]
    assert not wrong, "\n".join([*wrong, f"python tools/run_pages.py --write docs/{name}"])


@pytest.mark.parametrize("name", NAMES)
def test_a_block_runs_or_gives_a_reason(name):
    """On a documentation page, a block of C++ is a file that a later block compiles. A block in another language than
    Python or bash has a name, or is a drawing."""
    idle = [
        f"{block.language}, line {block.line}"
        for block in pages.blocks_of((DOCS / name).read_text())
        if not (block.is_run or block.word or block.language == "text")
    ]
    assert not idle


def test_every_page_is_in_one_toctree():
    found = []
    for page in DOCS.rglob("*.md"):
        for tree in TOCTREE.findall(page.read_text()):
            found += [(page.parent / f"{line}.md").resolve() for line in tree.split()]
    made = {"headers", "errors"}
    pages_there = {page for page in DOCS.rglob("*.md") if page.parent.name not in made} - {DOCS / "index.md"}
    # The page of errors is in a toctree that the build of the site generates.
    of_made = DOCS / "errors.md"
    found = [page for page in found if page.parent.name not in made and page != of_made]
    assert sorted(found) == sorted(pages_there - {of_made})


# ---- pages that are made when the site is built ----


def test_each_error_of_the_table_has_a_page_titled_as_people_search():
    made = error_pages.error_pages()
    assert made["715.md"].startswith("# CUDA error 715: an illegal instruction was encountered\n")
    assert "- a rank-2 map in a rank-1 load\n" in made["715.md"] and "`cudaErrorIllegalInstruction`" in made["715.md"]
    assert set(made) - {"index.md"} == {f"{number}.md" for number in _cuda_errors.CUDA_ERRORS if 700 <= number <= 720}
    # A kernel does not cause error 704, so the page does not mention the variable.
    assert "CUDA_LAUNCH_BLOCKING" not in made["704.md"]


HEADERS = ["barrier.cuh", "tma.cuh", "wgmma.cuh", "sm100.cuh", "tensor_memory.cuh", "tcgen05.cuh"]


@pytest.mark.parametrize("header", HEADERS)
def test_each_function_of_a_header_is_on_its_page(header):
    """The test treats a name before a parenthesis at the start of a line of C++ as a function."""
    text = (Path(cuda_tma.include_path()) / "cuda_tma" / header).read_text()
    page = header_pages.header_pages()[header.replace(".cuh", ".md")]
    declared = set(re.findall(r"^__device__ [^(\n=]*?(\w+)\(", text, re.MULTILINE))
    assert len(declared) > 0
    titles = " ".join(re.findall("^##+ (.*)$", page, re.MULTILINE))
    shown = set(re.findall(r"`(?:\w+::)?(\w+)`", titles))
    assert declared - shown == set()


def test_a_comment_appears_under_its_subject():
    text = "// A.\n// cuda_tma/x.cuh: of x.\n\nnamespace cuda_tma {\n\n"
    text += "// Adds <one>.\nint f(int x = g(1)) { return x; }\nint g(int);\n\n"
    text += "// A pair.\nstruct P {\n    // The first.\n    int a;\n\n    int sum() const { return a; }\n};\n\n"
    first, pair = header_pages.entries_of(text + "}  // namespace cuda_tma\n")
    assert (first.comment, first.declarations) == ("Adds <one>.", ["int f(int x = g(1));", "int g(int);"])
    assert pair.names == ["P"] and [member.names for member in pair.members] == [["a"], ["sum"]]
    inner = "namespace cuda_tma {\nnamespace part {\n// Adds.\nint f();\n}  // namespace part\n\nint g();\n"
    assert [entry.names for entry in header_pages.entries_of(inner)] == [["part::f"], ["g"]]
    assert header_pages.markdown(first.comment) == "Adds \\<one\\>.\n"


# ---- the commands that run the pages ----

PAGE = """# A page

```ini given.txt
7
```

```python
given = int(open("given.txt").read())
print(given + 1)
```

```text
8
```

```text
a drawing
```

```sh
echo $((2 + 2))
```
"""


def run(text, folder):
    return [(ran.printed, pages.compare(ran)) for ran in pages.run(text, folder)]


def test_shown_output_is_compared(tmp_path):
    (first, right), (second, missing) = run(PAGE, tmp_path)
    assert (first, right, second) == ("8\n", None, "4\n")
    assert missing == "line 21: the page shows\n\nand the block printed\n4\n"
    assert run(PAGE.replace("\n8\n", "\n9\n"), tmp_path)[0][1].startswith("line 8: the page shows\n9\n")


def test_printed_output_is_written(tmp_path):
    text = PAGE.replace("\n8\n", "\n9\n")
    written = pages.with_outputs(text, list(pages.run(text, tmp_path)))
    assert written == PAGE.rstrip("\n") + "\n\n```text\n4\n```\n"
    assert [words for _, words in run(written, tmp_path)] == [None, None]


def test_a_page_never_shows_an_exception(tmp_path):
    ((printed, words),) = run("```python\nraise ValueError(3)\n```\n\n```text\n...\n```\n", tmp_path)
    assert printed.endswith("ValueError: 3\n") and words.startswith("line 2:")


def test_blocks_for_a_gpu_are_only_compiled(tmp_path):
    assert run("```python gpu\nimport nothing_of_that_name\n```\n", tmp_path) == [("", None)]
    with pytest.raises(SyntaxError):
        run("```python gpu\nimport\n```\n", tmp_path)


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference"])
def test_an_index_links_each_page_of_its_hidden_tree(folder):
    """GitHub shows a toctree as code, so the index of each hidden toctree also contains links. Only the site shows a
    hidden toctree."""
    text = (DOCS / folder / "index.md").read_text()
    hidden = re.findall(r"```{toctree}\n:hidden:\n(.*?)```", text, re.DOTALL)
    pages_of_tree = [line for tree in hidden for line in tree.splitlines() if line and not line.startswith(":")]
    linked = re.findall(r"^- \[[^\]]+\]\((.*)\.md\)$", text, re.MULTILINE)
    # The build of the site writes the page errors/index.
    assert linked == [page for page in pages_of_tree if page != "../errors/index"]
