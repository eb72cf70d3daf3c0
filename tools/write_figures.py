"""Write the figures of docs/speed.md from recordings of `make bench`, which are copied to docs/benchmarks/*.md.

The script writes each block between `<!-- figures: NAME -->` and `<!-- end -->`, so that no person types a figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "benchmarks"
# KERNELS maps (example, case) to the description in docs/speed.md, and an empty case stands for all cases.
KERNELS = {
    ("copy_2d", "4 GiB"): "where to begin; 4 GiB",
    ("transpose", "4 GiB"): "swizzled tiles, no bank conflicts; 4 GiB",
    ("gather_rows", "1 GiB of rows of 1024 bytes"): "an embedding; 1 GiB",
    ("kv_tiles", "d 128"): "keys and values staged as attention does, d = 128",
    ("gemm", ""): "multicast, wgmma, persistent; bf16",
    ("gemm_every_shape", ""): "tile, cluster and parts of K by a model; bf16",
    ("attention", ""): "forward; full and causal, d = 64 and 128; bf16",
    ("conv_im2col", "32 x 56 x 56, 256 to 256 channels, 3 x 3, bf16"): "3 x 3, 256 channels, bf16",
    ("grouped_gemm", ""): "a mixture of experts; bf16",
}
RIVAL = "rival's"
# The page marks each rival in WEAK as a weak rival.
WEAK = {"torch.Tensor.contiguous", "torch.index_select", "a loop of torch.matmul"}


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of all tables in a page, by their headings. `table` is the heading above the table, and "" is the
    column without a heading.

    >>> rows_of("## Times\\n\\n|  | ms |\\n| --- | ---: |\\n| f | 3 |\\n")
    [{'table': 'Times', '': 'f', 'ms': '3'}]
    """
    rows, title, head = [], "", None
    for line in text.splitlines():
        title = line.removeprefix("## ") if line.startswith("## ") else title
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if head is None:
            head = cells
        elif not set("".join(cells)) <= set("-: "):
            rows.append({"table": title, **dict(zip(head, cells, strict=True))})
    return rows


def beside(page: str) -> Iterator[str]:
    """Yield the comparison with cuda.core, from gpu.md."""
    rows = {(row["table"], row[""]): row for row in rows_of(page) if "median, ns" in row}
    torch, view = "Create from a torch tensor, float32", "Create from a view, rank 2"

    def time(table: str, name: str) -> str:
        row = rows.get((table, name))
        return f"{float(row['median, ns']) / 1000:.3g} µs" if row else "not measured"

    def ratio(name: str) -> str:
        row = rows["Launch: a map and a pointer", name]
        paired = re.search(r"\d\.\d+ \(.*\)", row["met"])
        return paired[0] if paired else row["× floor"]

    keywords = "cuda_tma, `device.create_tensor_map` with keywords"
    yield "| | cuda.core | cuda_tma |"
    yield "|---|---:|---:|"
    ours, theirs = time(torch, "cuda_tma"), time(torch, "cuda.core")
    yield f"| a descriptor of a torch tensor, options made before | {theirs} | {ours} |"
    yield f"| the same, of bfloat16 | | {time(torch, 'cuda_tma, bfloat16')} |"
    if (torch, keywords) in rows:
        yield f"| the same, `device.create_tensor_map(x, box_dim=...)` | | {time(torch, keywords)} |"
    yield f"| of a view, with keywords | {time(view, 'cuda.core, keywords')} | {time(view, 'cuda_tma, keywords')} |"
    yield (
        f"| a launch with a map and a pointer, relative to C's `cuLaunchKernel` | {ratio('cuda.core.launch')} times | "
        f"{ratio('cuda_tma.launch')} times |"
    )
    yield f"| the same, prepared | | {ratio('cuda_tma.PreparedLaunch')} times |"
    yield ""
    yield f"{conditions(page)} ([all measurements](benchmarks/gpu.md))."


def threads(page: str) -> Iterator[str]:
    """Yield the launches by several threads at once, from gpu.md."""
    found: dict[str, dict[int, float]] = {}
    for row in rows_of(page):
        if row["table"] == "Launch: threads":
            name, count = row[""].rsplit(", ", 1)
            found.setdefault(name, {})[int(count.split()[0])] = float(row["median, ns"]) / 1000
    counts = next(iter(found.values()), {})
    yield "| each launch of all threads together | " + " | ".join(f"{n} thread{'s' * (n > 1)}" for n in counts) + " |"
    yield "|---" + "|---:" * len(counts) + "|"
    for name, times in found.items():
        yield f"| `{name}` | " + " | ".join(f"{us:.3g} µs" for us in times.values()) + " |"
    yield ""
    yield f"{conditions(page)}."


def nvrtc(page: str) -> Iterator[str]:
    """Yield the compile times, from nvrtc.md."""
    *_, compiler, cccl = page.splitlines()[0].split("; ")
    yield f"| {compiler}, {cccl} | median | middle half |"
    yield "|---|---:|---:|"
    for row in rows_of(page):
        yield f"| {row['']} | {row['median, ms']} ms | {row['middle half, ms']} ms |"


def kernels(page: str) -> Iterator[str]:
    """Yield the comparison of the kernels with their rivals, from kernels.md.

    Each pair of a rival and a regime has one row for all cases.
    """
    yield "| | ours | rival's | ours / rival's | least to greatest | rival |"
    yield "|---|---:|---:|---:|---:|---|"
    rows = [row for row in rows_of(page) if "kernel" in row]
    for (name, case), words in KERNELS.items():
        groups: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in rows:
            if row["kernel"] == f"`{name}`" and row["ours"] and case in ("", row["case"]):
                groups.setdefault((row["rival"], row["regime"]), []).append(row)
        if not groups and any(row["kernel"] == f"`{name}`" for row in rows):
            raise SystemExit(f"kernels.md has no figures of {name}, {case}")
        for (rival, regime), of_group in groups.items():
            how = words if regime == "in turns" else f"{words}; {regime}"
            weak = ", a weak one" if rival in WEAK else ""
            cells = _of_cases(page, of_group) if len(of_group) > 1 else _of_one(of_group[0])
            yield f"| [`{name}`](../examples/{name}.py): {how} | {' | '.join(cells)} | {rival}{weak} |"
    yield ""
    yield f"{conditions(page)}."


def _of_one(row: dict[str, str]) -> Iterator[str]:
    """Yield both speeds, their ratio, and the least and greatest ratio of the processes."""
    yield from (f"{row[whose]} {row['']}" for whose in ("ours", RIVAL))
    yield from (row[f"ours / {RIVAL}"], row["least to greatest"])


def _of_cases(page: str, rows: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield the ranges of both speeds over several cases, and the ratios from a sentence of the page."""
    for whose in ("ours", RIVAL):
        speeds = sorted((row[whose] for row in rows), key=float)
        yield f"{speeds[0]} to {speeds[-1]} {rows[0]['']}"
    which, rival = re.escape(f"{rows[0]['kernel']}, {rows[0]['regime']}"), re.escape(rows[0]["rival"])
    cases = rf"geometric mean of {len(rows)} cases; least (\S+%), greatest (\S+%)"
    said = rf"^{which}, has (\S+%) of the speed of {rival} \({cases}\)\.$"
    if (found := re.search(said, page, re.MULTILINE)) is None:
        raise SystemExit(f"kernels.md does not sum up {rows[0]['kernel']} versus {rows[0]['rival']}")
    yield f"{found[1]} in the mean of {len(rows)} cases"
    yield f"{found[2]} to {found[3]}"


def conditions(page: str) -> str:
    """Return the names of the GPU and the driver from the first line of a page."""
    gpu, driver, *_ = page.splitlines()[0].split("; ")
    core, torch = (re.search(rf"{name} [\d.]+\d", page.splitlines()[0]) for name in ("cuda-core", "torch"))
    return ", ".join(["Measured on one " + gpu, driver, *(found[0] for found in (core, torch) if found)])


# BLOCKS maps a block of a page to the function that writes the block and to the record that the function reads.
BLOCKS: dict[str, tuple[Callable[[str], Iterator[str]], str]] = {
    "gpu": (beside, "gpu"),
    "threads": (threads, "gpu"),
    "nvrtc": (nvrtc, "nvrtc"),
    "kernels": (kernels, "kernels"),
}
PAGES = {"docs/speed.md": ("gpu", "kernels", "threads", "nvrtc")}


def fill(page: str, names: Sequence[str], records: Path = RECORDS) -> str:
    """Return a page with its blocks filled from the records."""
    for name in names:
        lines, record = BLOCKS[name]
        block = "\n".join(lines((records / f"{record}.md").read_text()))
        mark = f"<!-- figures: {name} -->"
        page, count = re.subn(
            rf"{mark}\n.*?\n<!-- end -->",
            lambda _, mark=mark, block=block: f"{mark}\n\n{block}\n\n<!-- end -->",
            page,
            flags=re.S,
        )
        if count != 1:
            raise SystemExit(f"the page has {count} blocks {mark}")
    return page


if __name__ == "__main__":
    for name, blocks in PAGES.items():
        (ROOT / name).write_text(fill((ROOT / name).read_text(), blocks))
