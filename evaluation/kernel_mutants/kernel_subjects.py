"""The kernels of the mutants.

Each kernel is from a test or an example, with the code that launches it on the simulator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cuda_tma import simulate
from tests.examples import test_gemm_every_shape
from tests.examples import test_simulated as test_simulate_examples
from tests.gpu import (
    test_header,
    test_header_bulk,
    test_header_cluster,
    test_header_order,
    test_header_replace,
    test_header_scope,
)
from tests.pipelines import Pipeline
from tests.pipelines import run as run_pipeline
from tests.real_bugs import real_bugs
from tests.simulate import test_third_party as test_simulate_third_party
from tests.simulate._copies import test_copies as test_simulate_copies
from tests.support import simulated_examples
from tests.support.simulated_machine import Machine, kernel_of


def _example(name: str, sizes: dict[str, int]) -> Callable[[], None]:
    def start() -> None:
        gpu = simulate.Device(multiprocessor_count=4)
        compiled = functools.cache(lambda source, kernel, **constants: gpu.compile(source, kernel, constants=constants))
        test = getattr(test_simulate_examples, f"test_{name}")
        given = {"run": gpu.launch, "compiled": compiled, "gpu": gpu}
        wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
        test(**{key: given[key] for key in wanted if key in given}, **sizes)

    return start


def _whole_example(name: str, case: tuple) -> Callable[[], None]:
    """Return the first launch of an example, in the form of the example itself."""

    def start() -> None:
        simulated_examples.SIZES[name] = (case,)
        simulated_examples.run_simulated(name)

    return start


def _header_test(module: Any, test: str, parameters: dict[str, object]) -> Callable[[], None]:
    def start() -> None:
        # The cached kernels are removed, because a mutation of a header affects only new compilations.
        kernel_of.cache_clear()
        getattr(module, f"test_{test}")(Machine(), **parameters)

    return start


def _fixed(bug: Any) -> Callable[[], None]:
    def start() -> None:
        gpu = simulate.Device()
        given, out = np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)
        maps = [gpu.create_tensor_map(array.reshape(-1, *bug.box[1:]), box_dim=bug.box) for array in (given, out)]
        kernel = gpu.compile(bug.source, "kernel", defines={"FIXED": 1})
        gpu.launch(
            simulate.Config(bug.grid // bug.cluster, bug.block, bug.cluster), kernel, *maps, given, out, bug.tiles
        )

    return start


def _variant(variant: tuple[dict, tuple]) -> Callable[[], None]:
    """Return a launch of one variant of the GEMM for every shape."""
    sizes, (problem, *more) = variant

    def start() -> None:
        module = test_gemm_every_shape.gemm
        for name, value in {**simulated_examples.simulated(), "choose": lambda *_: chosen}.items():
            setattr(module, name, value)
        chosen = test_gemm_every_shape.Variant(**sizes)
        for _, ours, *_ in module.cases([test_gemm_every_shape.Case(module.Problem(*problem), *more)]):
            ours()

    return start


def _test_of_names(module: Any, test: str, compile_first: Callable[[simulate.Device], Any]) -> Callable[[], None]:
    """Return a test that runs a kernel by its name, from a text that is compiled once."""

    def start() -> None:
        gpu = simulate.Device()

        def run(name: str, config: simulate.Config, *arguments: Any) -> None:
            gpu.launch(config, compile_first(gpu)(name), *arguments)

        function = getattr(module, f"test_{test}")
        given = {"run": run, "gpu": gpu}
        function(**{name: given[name] for name in function.__code__.co_varnames[: function.__code__.co_argcount]})

    return start


def _third_party(gpu: simulate.Device) -> Callable[[str], simulate.Kernel]:
    folders = (*test_simulate_third_party.INCLUDES[:1], *test_simulate_third_party.TOOLKIT[:1])
    options = [f"-I{folder}" for folder in dict.fromkeys(map(str, folders))]
    return lambda name: gpu.compile(test_simulate_third_party.SOURCE, name, options=options)


def _copies(gpu: simulate.Device) -> Callable[[str], simulate.Kernel]:
    return lambda name: gpu.compile(test_simulate_copies.SOURCE, name)


def _pipeline(shape: Pipeline) -> Callable[[], None]:
    return lambda: run_pipeline(shape)


# The sizes are chosen so that a CTA computes several tiles in an odd number of steps, and uses each stage of a ring
# more than once.
_EXAMPLES: dict[str, dict[str, int]] = {
    "tiled_load": {}, "copy_2d": {"ctas": 1}, "transpose": {}, "replace_address": {}, "fp8_tiles": {}, "kv_tiles": {},
    "gemm": {"m": 136, "n": 520, "k": 264}, "conv_im2col": {"n": 2, "h": 33, "w": 31},
    "grouped_gemm": {"rows": 520, "depth": 136, "clusters": 1},
}  # fmt: skip
_HEADER_TESTS = (
    (test_header_order, "pipeline", {"stages": 2}),
    (test_header_order, "arrive_at", {}),
    (test_header_scope, "a_flag_between_ctas", {"scope": "gpu"}),
    (test_header_replace, "a_changed_map_is_loaded_through", {"scope": "gpu"}),
    (test_header_cluster, "send_reduce_bulk", {"op": "add", "name": "u32"}),
    (test_header_cluster, "store_async", {}),
    (test_header_cluster, "barrier_of_another_cta", {}),
    # Only the third batch of mutants includes the subjects below.
    (test_header_cluster, "pipeline_of_a_cluster", {"stages": 2}),
    (test_header_cluster, "pipeline_of_two_producers", {"stages": 2}),
    (test_header_cluster, "named_barriers_take_turns", {}),
    (test_header_cluster, "cluster_barrier_in_two_steps", {}),
    (test_header_cluster, "arrivals_with_a_count", {}),
    (test_header_cluster, "reduce_async", {}),
    (test_header_order, "barrier_phases", {}),
    (test_header_order, "tensor_map_written_by_another_cta", {}),
)
_WHOLE_EXAMPLES = {"attention": (3, 2, 1, 70, 400, 64, True), "gather_rows": (900, 145)}
# Only the fourth batch of mutants includes the subjects below.
_VARIANTS: dict[str, tuple[dict, tuple]] = {
    "pairs": ({"rows": 128, "columns": 64, "down": 2, "across": 2}, ((392, 264, 456), "bfloat16", True, "relu")),
    "splits": (
        {"rows": 128, "columns": 32, "splits": 3, "is_turned": True},
        ((40, 264, 840), "bfloat16", True, "gelu"),
    ),
    "columns": ({"rows": 128, "columns": 64, "across": 2}, ((264, 200, 456, False, False), "float16", False, "silu")),
}
_MORE_HEADER_TESTS = (
    (test_header_order, "tensor_map_changed_between_loads", {}),
    (test_header_order, "elect_one", {}),
    (test_header_scope, "counters", {"word": "unsigned"}),
    (test_header_bulk, "bulk_copies", {"size": 4096, "hint": ""}),
    (test_header_bulk, "bulk_reductions", {"op": "add", "name": "u32"}),
    (test_header_bulk, "wait_group_read", {}),
    (test_header_bulk, "wait_group", {}),
    (test_header_bulk, "bulk_multicast", {}),
    (test_header_bulk, "send_bulk", {}),
    (test_header, "swizzled_reads_the_tile_back", {"mode": "SWIZZLE_64B"}),
)
_THIRD_PARTY = ("bytes_in_and_out", "a_box_in_and_out", "values_sent_to_another_cta", "a_ring_of_inline_ptx")
_COPIES = (
    "im2col", "multicast", "reductions_of_several_blocks_add_up", "bulk_copies", "bulk_copies_between_ctas",
    "values_put_into_another_cta", "copies_of_sixteen_bytes", "copies_that_arrive_at_a_barrier",
    "maps_are_changed_by_threads",
)  # fmt: skip
_PIPELINES = {
    "multicast": Pipeline(ctas=2, grid=4, multicast=True, slices=2, items=9, consumers=64, release="WARP"),
    "st_async": Pipeline(producer="ST_ASYNC", ctas=2, grid=2, items=9, release="COUNTED"),
    "cp_async": Pipeline(producer="CP_ASYNC", groups=True, items=7, consumers=64, epilogue="STAGED", buffers=2),
    "products": Pipeline(
        producer="STORES", consumer="WGMMA", element="unsigned short", swizzle="SWIZZLE_128B", cols=64, slices=8,
        consumers=128, items=5, release="GROUP",
    ),
    "reduced": Pipeline(consumer="REDUCE", items=7, stages=3, release="HEADER", delay=True),
    "peers": Pipeline(producer="BULK", ctas=2, grid=4, items=14, finish="PEER_BULK", exchange="NEIGHBOURS"),
    "handed_on": Pipeline(grid=3, items=11, handoff="CHAIN", release="LATE", epilogue="STAGED_REDUCE"),
    "loaded_last": Pipeline(grid=4, items=13, handoff="LAST_LOADED", multiprocessors=4),
}  # fmt: skip
SUBJECTS: dict[str, Callable[[], None]] = {
    **{f"examples/{name}": _example(name, sizes) for name, sizes in _EXAMPLES.items()},
    **{f"examples/{name}": _whole_example(name, case) for name, case in _WHOLE_EXAMPLES.items()},
    **{f"tests/gpu/{name}": _header_test(module, name, given) for module, name, given in _HEADER_TESTS},
    **{f"tests/real_bugs/{bug.name}": _fixed(bug) for bug in real_bugs()},
    **{f"examples/gemm_every_shape/{name}": _variant(given) for name, given in _VARIANTS.items()},
    "examples/attention/wide": _whole_example("attention", (2, 1, 1, 130, 330, 128, False)),
    **{f"tests/gpu/{name}": _header_test(module, name, given) for module, name, given in _MORE_HEADER_TESTS},
    **{
        f"tests/third_party/{name}": _test_of_names(test_simulate_third_party, name, _third_party)
        for name in _THIRD_PARTY
    },
    **{f"tests/copies/{name}": _test_of_names(test_simulate_copies, name, _copies) for name in _COPIES},
    **{f"tests/pipelines/{name}": _pipeline(shape) for name, shape in _PIPELINES.items()},
}


# LAUNCHES maps a subject to its number of launches, which is 1 for subjects that are not listed.
LAUNCHES = {"examples/gather_rows": 2}
