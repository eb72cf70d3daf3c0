"""Tests of README and of the site's front page, whose code prints the shown report."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cuda_tma

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

import draw_docs  # noqa: E402
import pages  # noqa: E402

README = (ROOT / "README.md").read_text()
WITHOUT_GPU, COMMAND, INSTALL, ON_GPU = pages.blocks_of(README)
HEADER_LINE = re.compile(r"\w+\.cuh:\d+")


def test_the_code_prints_the_report(tmp_path):
    wrong = [words for ran in pages.run(README, tmp_path, "README.md") if (words := pages.compare(ran))]
    assert wrong == []
    assert WITHOUT_GPU.shown.startswith("twice.cu:9: error: ") and "[race]" in WITHOUT_GPU.shown


def test_the_barrier_repairs_the_kernel(tmp_path):
    repaired = WITHOUT_GPU.text.replace("}  //", "} __syncthreads();  //")
    assert repaired != WITHOUT_GPU.text
    (ran,) = pages.run(f"```python\n{repaired}```\n", tmp_path)
    assert ran.printed == "no findings\n"


def test_the_code_is_short_and_uses_public_names():
    assert len(WITHOUT_GPU.text.splitlines()) <= 15 and len(ON_GPU.text.splitlines()) <= 15
    for block in (WITHOUT_GPU, ON_GPU):
        names = re.findall(r"\bcuda_tma\.(\w+)", re.sub(r'r""".*?"""', "", block.text, flags=re.DOTALL))
        imported = re.findall(r"^from cuda_tma import (.*)$", block.text, re.MULTILINE)
        for name in {*names, *(name for line in imported for name in line.split(", "))}:
            assert hasattr(cuda_tma, name), name


def test_the_code_for_a_gpu_runs_under_the_sanitizer(tmp_path):
    """Two code blocks of README form one script. The command reports the race of the first kernel, and has no finding
    in the corrected kernel."""
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_GPU.text + ON_GPU.text)
    command = [sys.executable, "-m", "cuda_tma", "sanitize", "--", sys.executable, str(script)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert WITHOUT_GPU.shown in done.stdout
    assert "2 launches judged under 4 schedules, 1 error;" in done.stdout


def test_the_comparison_has_the_recorded_counts():
    recorded = (ROOT / "docs" / "compare_sanitizers.md").read_text()
    assert f"compute-sanitizer {re.search(r'compute-sanitizer ([0-9]+.[0-9]+.[0-9]+)', recorded)[1]} " in README
    found = dict(re.findall(r"^- (?:the )?(\w+): (\d+) of 37", recorded, re.MULTILINE))
    assert f"| finds {found.pop('simulator')} | " + ", ".join(" ".join(each) for each in found.items()) in README


def test_links():
    """Every file to which README links exists."""
    if not (ROOT / "cuda_tma").exists():
        pytest.skip("README points to sources, which an installed wheel lacks")
    targets = re.findall(r"\]\((?!http)([^)]+)\)", README)
    assert len(targets) >= 6
    assert [target for target in targets if not (ROOT / target.partition("#")[0]).is_file()] == []


def test_the_front_page_has_the_beginning_of_readme():
    index = (ROOT / "docs" / "index.md").read_text()
    end = re.search(r"^:end-before: (.*)$", index, re.MULTILINE)[1]
    beginning, links = README.split(end)
    assert "{include} ../README.md" in index and links.lstrip().startswith("## Documentation")
    assert all(link.startswith("docs/") for link in re.findall(r"\]\((?!http)([^)]+)\)", beginning))


def test_the_changelog_is_a_summary():
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 40


# ---- line numbers of the headers ----


def text_of(svg: str) -> list[str]:
    return [
        html.unescape(re.sub("<[^>]*>", "", row)).replace("\xa0", " ") for row in re.findall("<text.*?</text>", svg)
    ]


def test_the_picture_of_a_finding_is_current():
    pytest.importorskip("rich")
    drawn = (ROOT / "docs" / "images" / "finding.svg").read_text()
    assert text_of(drawn) == text_of(draw_docs.finding()), "run: python tools/draw_docs.py"


def test_header_lines_are_only_where_a_test_compares_them():
    """Lines of the device header are shown only on pages that a test compares with the present output."""
    compared = {
        *pages.PAGES,
        ROOT / "README.md",
        ROOT / "docs" / "sanitizer.md",
        ROOT / "docs" / "images" / "finding.svg",
    }
    shown = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.svg"), ROOT / "CONTRIBUTING.md"]
    assert [path for path in shown if path not in compared and HEADER_LINE.search(path.read_text())] == []
