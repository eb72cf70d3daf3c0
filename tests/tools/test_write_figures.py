"""Tests that the figures of docs/speed.md equal the recorded figures of the benchmarks."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks import comparison
from benchmarks.comparison import Row
from benchmarks.kernels import FAMILIES
from benchmarks.kernels.figures import Figure, Figures, markdown, summary

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import write_figures

ROOT = Path(__file__).parents[2]
GPU = "NVIDIA H200; driver 580.1; a CPU; cuda-core 1.2.2, torch 2.11.0, numpy 2"
GEMM = Figure("gemm", "large", "cuBLAS", (2.0,), (1.0,), "burst", 10**12, 10**9)


@pytest.mark.parametrize("page", write_figures.PAGES)
def test_pages_contain_the_recordings(page):
    """The figures on the pages equal the recorded figures. After a failure, run `make bench` with `--output`, copy the
    output to docs/benchmarks, and run `python tools/write_figures.py`."""
    text = (ROOT / page).read_text()
    assert write_figures.fill(text, write_figures.PAGES[page]) == text


@pytest.mark.parametrize("page", write_figures.PAGES)
def test_no_figure_is_typed_outside_the_blocks(page):
    text = re.sub(r"<!-- figures: .*?<!-- end -->", "", (ROOT / page).read_text(), flags=re.S)
    assert re.findall(r"\d[\d.]* (?:µs|ns|ms|us|TB/s|GB/s|TFLOP/s)|\d[\d.]* ?%(?! interval)", text) == []


def test_rows_are_read_from_tables():
    page = "line\n\n## One\n\n|  | `a` \\| b |\n| --- | ---: |\n| x | 1 |\n\nnote\n\n## Two\n\n| c |\n| --- |\n| 2 |\n"
    assert write_figures.rows_of(page) == [{"table": "One", "": "x", "`a` \\| b": "1"}, {"table": "Two", "c": "2"}]


def kernels_page(**changes):
    """Return a benchmark record with every figure that docs/speed.md shows."""
    work = {"ours_ms": (2.0, 1.0, 4.0), "rival_ms": (1.0, 1.0, 1.0), "moved_bytes": 10**9}
    figures = []
    for name, case in write_figures.KERNELS:
        flops = {"regime": "sustained", "flops": 10**12, "clock_mhz": (1455.0,) * 3, "power_w": (698.0,) * 3}
        more = {"regime": "in turns"} if name in FAMILIES["memory"].examples else flops
        figures.append(Figure(name, case or "some", "torch.index_select", **{**work, **more}))
    without = changes.get("without")
    figures = [Figure(f.kernel, error="is wrong") if f.kernel == without else f for f in figures]
    return f"{GPU}\n\n{markdown(Figures('Kernels', figures))}"


def test_kernels_have_their_spread_and_regime():
    lines = list(write_figures.kernels(kernels_page()))
    assert len(lines) == 2 + len(write_figures.KERNELS) + 2
    assert lines[2] == (
        "| [`copy_2d`](../examples/copy_2d.py): where to begin; 4 GiB | 0.50 TB/s | 1.00 TB/s | 50.0% | 25.0% to "
        "100.0% | torch.index_select, a weak one |"
    )
    gemm = next(line for line in lines if "`gemm`" in line)
    assert gemm.startswith(
        "| [`gemm`](../examples/gemm.py): multicast, wgmma, persistent; bf16; sustained "
        "| 500 TFLOP/s | 1000 TFLOP/s | 50."
    )
    assert lines[-1] == "Measured on one NVIDIA H200, driver 580.1, cuda-core 1.2.2, torch 2.11.0."


def test_several_cases_share_one_row():
    work = {"regime": "burst", "flops": 10**12, "moved_bytes": 1}
    figures = [Figure("gemm", f"case {ms}", "torch.matmul", (1.0,), (ms,), **work) for ms in (4.0, 1.0)]
    more = markdown(Figures("More", figures, summary(figures)))
    lines = list(write_figures.kernels(f"{kernels_page(without='gemm')}\n{more}"))
    assert next(row for row in lines if "`gemm`" in row).endswith(
        "burst | 1000 to 1000 TFLOP/s | 250 to 1000 TFLOP/s | 200.0% in the mean of 2 cases | 100.0% to 400.0% "
        "| torch.matmul |"
    )


def test_the_mean_of_cases_is_that_of_the_record():
    """The mean on the page is the mean of exact ratios, because the mean of rounded ratios may end in another digit."""
    figures = [Figure("gemm", f"case {ms}", "torch.matmul", (3.0,), (ms,), "burst", 8, 8) for ms in (2.0, 7.0)]
    said = [sentence.replace("124.7%", "124.6%") for sentence in summary(figures)]
    assert said != summary(figures)
    page = f"{kernels_page(without='gemm')}\n{markdown(Figures('More', figures, said))}"
    assert any("124.6% in the mean of 2 cases" in line for line in write_figures.kernels(page))
    with pytest.raises(SystemExit, match="does not sum up `gemm` versus torch.matmul"):
        list(write_figures.kernels(page.replace("geometric mean", "mean")))


def test_a_kernel_that_was_not_timed_has_no_row():
    assert [*write_figures.kernels(f"{GPU}\n\n{markdown(Figures('Kernels', []))}")][2:-2] == []


def test_a_kernel_without_figures_is_named():
    with pytest.raises(SystemExit, match="no figures of gemm"):
        list(write_figures.kernels(kernels_page(without="gemm")))


def test_threads_are_in_one_row():
    rows = [
        Row(f"{name}, {n} thread{'s' * (n > 1)}", (ns, ns))
        for name, ns in (("a", 4649.0), ("b", 800.0))
        for n in (1, 2)
    ]
    page = f"{GPU}\n\n{comparison.markdown(comparison.Comparison('Launch: threads', rows))}"
    head, _, first, second, *_ = write_figures.threads(page)
    assert head == "| each launch of all threads together | 1 thread | 2 threads |"
    assert [first, second] == ["| `a` | 4.65 µs | 4.65 µs |", "| `b` | 0.8 µs | 0.8 µs |"]


def test_blocks_are_there_once(tmp_path):
    for _, record in write_figures.BLOCKS.values():
        (tmp_path / f"{record}.md").write_text((write_figures.RECORDS / f"{record}.md").read_text())
    blocks = [f"<!-- figures: {name} -->\nold\n<!-- end -->" for name in write_figures.BLOCKS]
    filled = write_figures.fill("a\n" + "\nb\n".join(blocks) + "\nc", [*write_figures.BLOCKS], tmp_path)
    assert "old" not in filled and filled.startswith("a\n<!-- figures") and filled.endswith("<!-- end -->\nc")
    assert write_figures.fill(filled, [*write_figures.BLOCKS], tmp_path) == filled
    with pytest.raises(SystemExit, match="0 blocks <!-- figures: nvrtc"):
        write_figures.fill(
            "".join(block for block in blocks if "nvrtc" not in block), [*write_figures.BLOCKS], tmp_path
        )


def test_the_chart_is_drawn_from_the_recorded_table(tmp_path):
    pytest.importorskip("sphinx")
    sys.path.append(str(ROOT / "docs" / "extensions"))
    import benchmark_figures

    tables = benchmark_figures.tables_of(f"{GPU}\n\n{markdown(Figures('Products', [GEMM]))}")
    (table,) = tables
    assert table.title == "Products" and (table.figures[0].case, table.figures[0].regime) == ("large", "burst")
    assert (round(table.figures[0].speed), table.figures[0].unit) == (500, "TFLOP/s")
