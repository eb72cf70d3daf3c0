"""Write docs/found/evidence.md, the page of published programs with the reports of the sanitizer.

The data are published_programs.json (the programs, with the class of each error), published_results.json (the figures
of the last run of each), consan/results.json and tilelang_issues/results.json.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "found" / "evidence.md"
FOUND = HERE.parent / "docs" / "found"
HEAD = """\
<!-- evaluation/write_evidence.py writes this page -->

# Evidence

`cuda-tma sanitize` ran published programs, without a GPU and without a change of the code. `evaluation/` contains the
scripts of these runs. Each table has the figures of the last run of each program; the machine has 2 cores, which other
work used at the same time. A program is right if it passes its own check. The programs of `evaluation/published/` call
the kernels of a project with small inputs, and compare the results with torch, NumPy or double precision. Each error
belongs to one of three classes:

- **true**: the code breaks a rule of the PTX ISA, and values or progress depend on it;
- **harmless**: the code breaks a rule by its text, and no known hardware shows an effect;
- **ours**: the error was wrong, and is fixed.
"""
ROWS = ("program", "launches", "skipped", "schedules", "errors", "seconds")


def read(name: str) -> Any:
    return json.loads((HERE / name).read_text("utf-8"))


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(str(each) for each in row)} |" for row in rows), ""]


def project_of(program: dict[str, Any], clones: dict[str, str]) -> str:
    """Return the clone of a program; the programs of numba-cuda are in its wheel."""
    text = f"{program.get('build', '')} {program['run']}"
    words = (word.strip("{}") for word in text.replace("/", " ").split())
    return next((word for word in words if word in clones), "numba-cuda")


def published(name_of: Any) -> list[str]:
    """Return the tables of the programs, one for each project."""
    listed, results = read("published_programs.json"), read("published_results.json")
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for program in listed["programs"]:
        name = name_of(program)
        if (row := results.get(name)) is None:
            continue
        classes = program.get("errors", {})
        errors = ", ".join(f"{kind} ({classes[kind]})" for kind in row["errors"]) or "none"
        errors += f": {program['reason']}" if row["errors"] else ""
        errors += f"; earlier {program['fixed']} (ours, fixed)" if "fixed" in program else ""
        project = project_of(program, listed["clones"])
        short = name.replace(f"{project}/", "").replace("here/", "evaluation/").replace("|", "\\|")
        seconds = f"{row['seconds']} (nvcc {row['nvcc']})" if "nvcc" in row else row["seconds"]
        figures = (row["judged"], row["skipped"], row["schedules"], errors, seconds)
        rows[project].append((f"`{short}`", *figures))
    lines = ["## Programs", "", *totals(rows)]
    for project, each in rows.items():
        address, _, version = listed["clones"].get(project, "numba-cuda 0.30.4").partition(" ")
        lines += [f"### {address.rpartition('/')[2]} {version}", "", *table(ROWS, each)]
    return lines


def totals(rows: dict[str, list[tuple[Any, ...]]]) -> list[str]:
    every = [row for each in rows.values() for row in each]
    clean = sum(row[4].startswith("none") for row in every)
    launches = sum(row[1] for row in every)
    return [
        f"{len(every)} programs with {launches:,} launches; {clean} programs have no error.",
        "DeepGEMM and FlashAttention-3 use the headers of CUTLASS 7107b0553. nvcc compiles FlashAttention-3 and",
        "ThunderKittens to PTX, and not to machine code.",
        "",
    ]


def consan() -> list[str]:
    """Return the table of Triton's tests of ConSan."""
    data = read("consan/results.json")
    found: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for each in data["tests"]:
        if each["outcome"] != "skipped" and each["is_wrong"]:
            found[each["rule"], each["source"]][each["outcome"] == "passed"] += 1
    rows = [(rule, source, count.total(), count[True]) for (rule, source), count in sorted(found.items())]
    wrong = [each for each in data["tests"] if each["is_wrong"] and each["outcome"] != "skipped"]
    right = [each for each in data["tests"] if not each["is_wrong"] and each["outcome"] != "skipped"]
    in_ptx = [each for each in wrong if each["source"] != "none"]
    passed = sum(each["outcome"] == "passed" for each in in_ptx)
    clean = sum(each["outcome"] == "passed" for each in right)
    lines = [
        "## Triton's tests of ConSan",
        "",
        f"`test_consan.py` of Triton {data['version']} ran on sm_90 with `evaluation/consan/consan_plugin.py`. Its own",
        "assertions judge the sanitizer in place of ConSan.",
        "",
        f"- Wrong kernels whose rule PTX has: {passed} of {len(in_ptx)} found ({100 * passed / len(in_ptx):.1f} %).",
        f"- Right kernels: {clean} of {len(right)} without an error.",
        "",
        *table(("ConSan's message", "rule of PTX", "wrong kernels", "found"), rows),
    ]
    return [*lines, *(f"- {line}" for line in data["remarks"]), ""]


def tilelang() -> list[str]:
    """Return the table of TileLang's issues."""
    rows = [
        (f"[#{each['issue']}](https://github.com/tile-ai/tilelang/issues/{each['issue']})", each["subject"],
         f"{each['named']}: {each['then']}", f"{each['today']}: {each['now']}")
        for each in read("tilelang_issues/results.json")
    ]  # fmt: skip
    head = ("issue", "subject", "release of the issue, finding", "today's release, finding")
    lines = ["## TileLang's issues about synchronization", ""]
    return [*lines, "`evaluation/tilelang_issues/` has a kernel for each issue.", "", *table(head, rows)]


def defects() -> list[str]:
    """Return the list of the folders of defects."""
    lines = [
        "## Defects in current releases",
        "",
        "Each folder has a reproduction, the finding and a suggested fix.",
        "",
    ]
    folders = sorted(each for each in FOUND.iterdir() if (each / "README.md").exists())
    for folder in folders:
        title = (folder / "README.md").read_text("utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}]({folder.name}/README.md)")
    tree = ["```{toctree}", ":hidden:", "", *(f"{folder.name}/README" for folder in folders), "```"]
    return [*lines, "", *tree, ""]


def page() -> str:
    """Return the text of the page."""
    from run_published_programs import name_of

    lines = [HEAD, *defects(), *published(name_of), *consan(), *tilelang()]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
