"""Tests of the timeline of a simulated kernel, with the dependencies of the kernel's waits."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from benchmarks.kernels import example
from cuda_tma import simulate
from cuda_tma.simulate._trace.copies import COPY_STEPS
from cuda_tma.simulate._warps.observe import Events

LOAD = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<8, 16>>;
extern "C" __global__ void copy(const __grid_constant__ TiledMap<Window> from, float* to) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(8 * 16 * 4 + MORE);
        load(tile, from, full, Coordinates{32, 8});
    }
    __syncthreads();
    full.wait(0);
    to[threadIdx.x] = tile(threadIdx.x / 16, threadIdx.x % 16);
}
"""


def line_of(text):
    return 1 + next(i for i, line in enumerate(LOAD.splitlines()) if text in line)


def loaded(more=0, sanitize=True, **settings):
    gpu = simulate.Device(sanitize=sanitize)
    given = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    kernel = gpu.compile(LOAD, "copy", defines={"MORE": more})
    return gpu.launch(simulate.Config(1, 128), kernel, given, np.zeros(128, np.float32), **settings)


def named(timeline, name):
    return next(track for track in timeline.tracks if track.name == name)


def test_a_load_is_seen_from_its_issue_to_the_wait_that_it_ends():
    timeline = loaded(trace=True).timeline()
    assert [(track.kind, track.name) for track in timeline.tracks] == [
        ("warps", "warp 0: loads"),
        ("warps", "warps 1–3"),
        ("copies", "TMA loads"),
        ("mbarrier", "full"),
    ]
    (copy,) = named(timeline, "TMA loads").spans
    assert (copy.kind, copy.label, copy.size_bytes) == ("load", "from {32, 8}", 512)
    assert copy.end - copy.begin == COPY_STEPS == timeline.copy_steps
    assert copy.source == f"copy.cu:{line_of('load(tile')}" and "load(tile, from, full" in copy.detail
    (wait,) = named(timeline, "warp 0: loads").spans
    assert (wait.label, wait.end, wait.source) == ("full", copy.end, f"copy.cu:{line_of('full.wait')}")
    assert wait.begin > copy.begin and not wait.in_vain
    meeting, same_wait = named(timeline, "warps 1–3").spans
    assert meeting.source == f"copy.cu:{line_of('__syncthreads')}" and copy.begin < meeting.end < wait.begin
    assert same_wait.end == copy.end


def test_an_mbarrier_reports_the_missing_part_of_its_phase():
    full = named(loaded(trace=True).timeline(), "full")
    made, expected, came, next_phase = full.levels
    assert [level[1:] for level in full.levels] == [(1, 0), (0, 512), (0, 0), (1, 0)]
    assert made[0] < expected[0] < came[0] - COPY_STEPS and next_phase[0] == came[0]
    (phase,) = full.spans
    assert (phase.label, phase.begin, phase.end, phase.in_vain) == ("0", made[0], came[0], False)
    assert "1 of 1 arrivals, 512 bytes" in phase.detail


def test_an_unsatisfied_wait_lasts_to_the_end_and_names_the_missing_parts():
    report = loaded(more=16, trace=True)
    assert [finding.kind for finding in report.errors] == ["transaction-count"]
    timeline = report.timeline()
    waits = [track.spans[-1] for track in timeline.tracks if track.kind == "warps"]
    assert [(wait.in_vain, wait.end) for wait in waits] == [(True, timeline.steps)] * 2
    assert "16 of 528 bytes are missing" in waits[0].label
    assert named(timeline, "full").spans[0].in_vain and named(timeline, "full").levels[-1][1:] == (0, 16)
    assert named(timeline, "TMA loads").spans[0].end < timeline.steps
    assert 'class="vain"' in timeline.svg()


def test_findings_and_results_do_not_depend_on_a_trace():
    plain, traced = loaded(more=16), loaded(more=16, trace=True)
    assert traced.findings == plain.findings and traced.thread_instructions == plain.thread_instructions
    assert loaded(trace=True).findings == loaded(sanitize=False, trace=True).findings == ()
    assert loaded(trace=True).timeline() == loaded(sanitize=False, trace=True).timeline()


def test_without_a_trace_a_kernel_runs_its_own_steps():
    code = SimpleNamespace(steps=[lambda group, lanes: None])
    assert Events(None).steps_of(code) is code.steps
    with pytest.raises(ValueError, match=re.escape("not traced; pass trace=True to gpu.launch")):
        loaded().timeline()


# ---- a pipeline ----


@pytest.fixture(scope="module")
def gemm():
    """Run the example's kernel on one cluster of two CTAs, with eight steps of K through four stages."""
    gpu = simulate.Device(multiprocessor_count=2, sanitize=False)
    kernel = gpu.compile(example("gemm").SOURCE, "gemm")
    shapes = ((256, 512), (256, 512), (256, 256))
    tensors = [np.ones(shape, ml_dtypes.bfloat16) for shape in shapes]

    def launched(order="early", seed=0):
        config = simulate.Config(grid=2, block=384)
        report = gpu.launch(config, kernel, *tensors, 1, 1, 8, order=order, seed=seed, trace=True)
        assert not report.errors and (tensors[2] == 512).all()
        return report.timeline()

    return launched


def test_a_pipeline_shows_its_roles_and_its_ring(gemm):
    timeline = gemm()
    assert timeline.blocks == ((0, 0, 0), (1, 0, 0))
    names = [track.name for track in timeline.of_block((1, 0, 0))]
    ring = [f"{side}[{stage}]" for side in ("full", "empty") for stage in range(4)]
    roles = ["warps 0–3: wgmma, stores", "warps 4–7: wgmma, stores", "warp 8: loads", "warps 9–11"]
    assert names == [*roles, "TMA loads", "TMA stores", *ring]


def test_each_wait_of_a_pipeline_ends_with_the_phase_that_it_is_for(gemm):
    """A phase of the full barrier ends with the last load of its stage. A warp does not wait at two barriers at
    once."""
    timeline = gemm()
    tracks = {track.name: track for track in timeline.of_block((0, 0, 0))}
    for track in tracks.values():
        waits = [span for span in track.spans if span.kind == "wait"]
        for wait in waits:
            if wait.label in tracks:
                assert wait.end in {phase.end for phase in tracks[wait.label].spans}
        assert all(before.end <= after.begin for before, after in pairwise(waits))
    arrivals = {copy.end for track in timeline.tracks for copy in track.spans if copy.kind == "load"}
    for stage in range(4):
        phases = tracks[f"full[{stage}]"].spans
        assert [phase.label for phase in phases] == ["0", "1"]
        assert {phase.end for phase in phases} <= arrivals and {phase.size_bytes for phase in phases} == {49152}
    multicast = next(copy for copy in tracks["TMA loads"].spans if copy.label.startswith("b_map"))
    assert "16,384 bytes, to each of 2 CTAs" in multicast.detail


def test_products_take_turns_and_their_wait_ends_with_the_last(gemm):
    consumer = gemm().tracks[0]
    products = [span for span in consumer.spans if span.kind == "wgmma"]
    assert len(products) == 8 * 4 and {span.end - span.begin for span in products} == {128}
    assert all(before.end <= after.begin for before, after in pairwise(products))
    waits = [span for span in consumer.spans if span.label == "its products"]
    assert {wait.end for wait in waits} <= {product.end for product in products}


@pytest.mark.parametrize("order", ["late", "random"])
def test_the_order_of_the_simulator_does_not_show(gemm, order):
    """The timeline does not depend on the order in which the simulator runs the parallel warps."""

    def ends(timeline):
        return [(track.name, [(span.end, span.label) for span in track.spans]) for track in timeline.tracks]

    assert ends(gemm(order, 3)) == ends(gemm())


# ---- pictures ----


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"width": 0}, ValueError, "width is 0; pass 400 to 100000"),
        ({"width": 10**9}, ValueError, "width is 1000000000; pass 400 to 100000"),
        ({"width": float("nan")}, TypeError, "width is nan; pass an integer"),
        ({"blocks": -1}, ValueError, "blocks is -1; pass 1 to 100000"),
        ({"blocks": True}, TypeError, "blocks is True; pass an integer"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(gemm, given, error, words):
    with pytest.raises(error, match=words):
        gemm().svg(**given)
    if "blocks" in given:
        with pytest.raises(error, match=words):
            gemm().html(**given)


def test_the_svg_is_a_picture_with_text_that_can_be_read(gemm):
    timeline = gemm()
    root = ElementTree.fromstring(timeline.svg(blocks=1))
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == f"gemm: the first of 2 CTAs, {timeline.steps:,} steps"
    assert words.count("block (0, 0, 0)") == 1 and "block (1, 0, 0)" not in words
    assert "steps, not in nanoseconds" in words[1] and "a_map {64, 0}" in words
    tips = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any("gemm.cu:" in (tip or "") for tip in tips)
    assert "prefers-color-scheme:dark" in timeline.svg()


def test_the_page_is_self_contained(gemm, tmp_path):
    timeline = gemm()
    timeline.write(tmp_path / "gemm.html")
    page = (tmp_path / "gemm.html").read_text("utf-8")
    assert not re.findall(r"(?:src|href)=|@import|fetch\(", page)
    assert {*re.findall(r"https?://[^\"' ]+", page)} <= {"http://www.w3.org/2000/svg"}
    assert page.count("data-tip=") > 100 and timeline.units in page
    with pytest.raises(ValueError, match=r"gemm\.png is not the name of a timeline; end the name in"):
        timeline.write(tmp_path / "gemm.png")
    assert not (tmp_path / "gemm.png").exists()


def test_copies_of_a_warp_have_a_timeline_without_the_sanitizer():
    source = """extern "C" __global__ void k(const int* in, int* out) {
        __shared__ int tile[32];
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::
            "r"((unsigned)__cvta_generic_to_shared(tile + threadIdx.x)), "l"(in + threadIdx.x));
        asm volatile("cp.async.wait_all;" ::: "memory");
        out[threadIdx.x] = tile[threadIdx.x];
    }"""
    gpu = simulate.Device(sanitize=False)
    given, taken = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    report = gpu.launch(simulate.Config(1, 32), gpu.compile(source, "k"), given, taken, trace=True)
    np.testing.assert_array_equal(taken, given)
    assert {"bytes", "its copies"} <= {span.label for track in report.traced.tracks for span in track.spans}
