"""Tests of the page of ``--html``, which is one complete file in which hostile text is harmless."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cuda_tma._command import cli, page
from cuda_tma._show.timeline import Timeline
from cuda_tma._show.tracks import Span, Track
from tests.support.sanitized_programs import sanitize

KERNELS = """#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void early(const __grid_constant__ TensorMap source, int* out, int bytes, int count) {
    __shared__ __align__(128) int tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); }
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(bytes);
        load(tile, source, full, Coordinates{0});
    }
    if (count) full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x]; // <b>{{title}}</b>
    full.wait(0);
}
"""
LAUNCH = ["kernels.cu", "--kernel", "early", "--grid", "1", "--block", "256", "--arg", "int32[256]@256", "--arg"]
VOID = {"meta", "link", "br"}


class Reader(HTMLParser):
    """A parser that stores the elements of an HTML page, and refuses an unclosed element."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def named(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("kernels.cu").write_text(KERNELS)
    return tmp_path


def written(*arguments):
    """Write the HTML page of one launch of the kernel, and return the page and the exit status."""
    status = cli.main(["sanitize", *LAUNCH, *arguments, "--html", "page.html"])
    return status, Path("page.html").read_text("utf-8")


def test_a_page_has_findings_lines_and_timelines(folder, capsys):
    status, page = written("int32[256]", "--arg", "1024", "--arg", "0")
    reader = Reader(page)
    text = "".join(reader.text)
    assert (status, reader.named("script")) == (1, [])
    assert "1 error in 1 launch" in text and "the other access" in text and "Remedy" in text
    assert [each["id"] for each in reader.named("article")] == ["finding-1", "finding-2"]
    assert "kernels.cu:13" in text and "out[threadIdx.x] = tile[threadIdx.x]; // <b>{{title}}</b>" in text
    hits = [each for each in reader.named("span") if each.get("class") == "hit"]
    assert len(hits) == 2
    assert len(reader.named("details")) == 2 and "Timeline around the finding" in text
    # The timeline of the page marks a finding with the color #d43c7c.
    assert any(each.get("stroke") == "#d43c7c" for each in reader.named("rect"))
    references = [each.get(name) for _, each in reader.elements for name in ("src", "href", "srcset") if each.get(name)]
    assert references == [] and "@import" not in page and "url(h" not in page


def test_a_deadlock_has_a_timeline_too(folder, capsys):
    _, page = written("int32[256]", "--arg", "2048", "--arg", "1")
    assert "transaction-count" in page and page.count("Timeline around the finding") == 1


def test_a_right_kernel_has_no_findings(folder, capsys):
    status, page = written("int32[256]", "--arg", "1024", "--arg", "1")
    reader = Reader(page)
    assert (status, reader.named("article"), "No errors in 1 launch" in page) == (0, [], True)


def test_a_program_has_its_launches_and_notes_in_the_page(tmp_path):
    text = "right(); wrong(); wrong()\ncurrent().note('a note with <b>')\ncurrent().skip('<i>', 'no PTX')"
    found = sanitize(tmp_path, text, "--html", "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    reader = Reader(page)
    assert found.status == 1 and "<i>" in "".join(reader.text) and "a note with <b>" in "".join(reader.text)
    assert "launched by script.py:2; 2 launches have this finding" in "".join(reader.text)
    # The table of the page has a row of headings, and a row for each of three kinds of launches.
    assert len(reader.named("tr")) == 4
    assert "Timeline around the finding" in page


def test_a_replay_has_the_same_page(tmp_path, monkeypatch):
    text = "x = np.arange(64, dtype=np.int32)\nwrong(array=x)"
    sanitize(tmp_path, text, "--html", "page.html", "--record", "launches")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sanitize", "launches", "--html", "again.html"]) == 1
    pages = [Reader((tmp_path / name).read_text("utf-8")) for name in ("page.html", "again.html")]
    first, again = ([text for text in page.text if " s" not in text and "." not in text] for page in pages)
    assert first == again


def test_a_part_of_a_timeline_is_around_its_statements():
    spans = (
        Span("wait", 0, 40, "early"),
        Span("wait", 1000, 1100, "wait", source="a.cu:7"),
        Span("wait", 9000, 9100, "x"),
    )
    warps = Track("warps", "warp 0", (1, 0, 0), 0, 10_000, spans)
    levels = ((0, 1, 0), (900, 1, 512), (1050, 0, 256), (5000, 0, 0))
    barrier = Track("mbarrier", "full", (1, 0, 0), 0, 10_000, (), levels)
    other = Track("warps", "warp 0", (0, 0, 0), 0, 10_000)
    part = Timeline("k", (other, warps, barrier), 10_000, 512).around({"a.cu:7"}, (1, 0, 0))
    assert (part.kernel, part.steps, part.blocks) == ("k, from step 940", 220, ((1, 0, 0),))
    (span,) = part.tracks[0].spans
    assert (span.begin, span.end) == (60, 160)
    assert part.tracks[1].levels == ((0, 1, 512), (110, 0, 256))
    whole = Timeline("k", (other, warps, barrier), 10_000, 512).around({"b.cu:1"}, (9, 9, 9))
    assert (whole.kernel, whole.steps, whole.blocks) == ("k", 6000, ((0, 0, 0),))
    ElementTree.fromstring(part.svg())


def test_a_picture_has_its_styles_unless_the_page_has_them():
    span = Span("wait", 0, 40, "full", source="a.cu:7")
    timeline = Timeline("k", (Track("warps", "warp 0", (0, 0, 0), 0, 50, (span,)),), 50, 512)
    assert timeline.svg().count("<style>") == timeline.svg().count("<pattern ") == 1
    assert timeline.svg(has_styles=False).count("<style>") == 0
    assert ("#d43c7c" in timeline.svg(marked=["a.cu:7"]), "#d43c7c" in timeline.svg(marked=["a.cu:8"])) == (True, False)


def test_only_a_result_has_the_mark_of_a_finding():
    assert page._cell("result", "1 error").count('class="tag is-error"') == 1
    assert page._cell("kernel", "error") == '<td data-name="kernel">error</td>'
    assert page._cell("launches", "3") == '<td class="number" data-name="launches">3</td>'
