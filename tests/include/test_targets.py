"""Tests of the table of features in target.cuh, in which each target has exactly the features that ptxas accepts.

The tests pass instructions of this module, without the header, to ptxas, for every target from sm_90 on that NVRTC
supports.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from cuda.bindings import nvrtc

from tests.include._header import FOLDER, cubin, defined_in, nvcc, ptx, words
from tests.include._targets import kernel, statements

_, ARCHITECTURES = nvrtc.nvrtcGetSupportedArchs()
TARGETS = [f"sm_{n}{suffix}" for n in ARCHITECTURES if n >= 90 for suffix in ("", "a", "f") if (n, suffix) != (90, "f")]
WHOLE = [target for target in ("sm_100a", "sm_100f", "sm_103a", "sm_110a") if target in TARGETS]

_LOAD = "cp.async.bulk.tensor.{rank}d.shared::{space}.global.{mode}.mbarrier::complete_tx::bytes{more}"
# For each feature, the table contains an instruction of PTX, and a function of the header that needs the feature.
FEATURES = {
    "wgmma": ("wgmma.fence.sync.aligned;", "require_wgmma<int>();"),
    "setmaxnreg": ("setmaxnreg.inc.sync.aligned.u32 64;", "register_alloc<64>();"),
    "tensormap_replace": (
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %0;",
        "__shared__ TensorMap mine; replace_rank(mine, 2);",
    ),
    "gather4": (
        _LOAD.format(rank=2, space="cta", mode="tile::gather4", more="") + " [%0], [%1, {%2, %2, %2, %2, %2}], [%0];",
        "load_gather4(tile, map, full, x, {0, 1, 2, 3});",
    ),
    "gather4_multicast": (
        _LOAD.format(rank=2, space="cluster", mode="tile::gather4", more=".multicast::cluster")
        + " [%0], [%1, {%2, %2, %2, %2, %2}], [%0], %3;",
        "load_gather4_multicast(tile, map, full, x, {0, 1, 2, 3}, 3);",
    ),
    "gather4_prefetch": (
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%1, {%2, %2, %2, %2, %2}];",
        "prefetch_gather4(map, x, {0, 1, 2, 3});",
    ),
    "scatter4": (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%1, {%2, %2, %2, %2, %2}], [%0];",
        "store_scatter4(map, x, {0, 1, 2, 3}, tile);",
    ),
    "im2col_w": (
        _LOAD.format(rank=3, space="cta", mode="im2col::w", more="") + " [%0], [%1, {%2, %2, %2}], [%0], {%3, %3};",
        "load_im2col_w(tile, map, full, Coordinates{x, y, 0}, 1, 2);",
    ),
    "im2col_w_multicast": (
        _LOAD.format(rank=3, space="cluster", mode="im2col::w", more=".multicast::cluster")
        + " [%0], [%1, {%2, %2, %2}], [%0], {%3, %3}, %3;",
        "load_im2col_w_multicast(tile, map, full, Coordinates{x, y, 0}, 1, 2, 3);",
    ),
    "im2col_w_prefetch": (
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w [%1, {%2, %2, %2}], {%3, %3};",
        "prefetch_im2col_w(map, Coordinates{x, y, 0}, 1, 2);",
    ),
    "im2col_w_128": (
        _LOAD.format(rank=3, space="cta", mode="im2col::w::128", more="")
        + " [%0], [%1, {%2, %2, %2}], [%0], {%3, %3};",
        "load_im2col_w_128(tile, map, full, Coordinates{x, y, 0}, 1, 2);",
    ),
    "cta_group2": (
        _LOAD.format(rank=1, space="cluster", mode="tile", more=".cta_group::2") + " [%0], [%1, {%2}], [%0];",
        "cta_group2::load(tile, map, full, Coordinates{x});",
    ),
    "tensormap_replace_packed": (
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 13;",
        "__shared__ TensorMap mine; replace_data_type<13>(mine);",
    ),
    "tensormap_replace_atomicity": (
        "tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%0], 1;",
        "__shared__ TensorMap mine; replace_swizzle<SWIZZLE_128B_ATOM_32B>(mine);",
    ),
    "cluster_launch_control": (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%0];",
        "__shared__ LaunchResponse response; try_cancel_launch(response, full);",
    ),
    "cluster_launch_multicast": (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
        " [%0], [%0];",
        "__shared__ LaunchResponse response; try_cancel_launch_multicast(response, full);",
    ),
    "tcgen05": ("tcgen05.wait::ld.sync.aligned;", "require_tcgen05<int>();"),
    "tcgen05_i8": (
        "{ .reg .pred p; setp.ne.u32 p, %0, 0; tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %1, %0, p; }",
        "require_tcgen05_i8<int>();",
    ),
}


@cache
def taken_by_ptxas(target: str) -> set[str]:
    """Return the features whose instructions ptxas accepts for a target. Each instruction is in its own kernel."""
    source = "".join(
        f"__global__ void kernel_{name}(unsigned a, void* map, int x, unsigned short s) "
        f'{{ asm volatile("{instruction}" ::"r"(a), "l"(map), "r"(x), "h"(s) : "memory"); }}\n'
        for name, (instruction, _) in FEATURES.items()
    )
    try:
        cubin(source, target)
    except AssertionError as error:
        log = str(error)
    else:
        return {*FEATURES}
    # The lines of the errors are those of the PTX.
    lines = ptx(source, target.replace("sm_", "compute_")).splitlines()
    refused = set()
    for line, message in re.findall(r"ptx input, line (\d+); error\s*: (.*)", log):
        assert re.search(
            r"not supported on .target|requires .target|value '\d+' expected|cannot be compiled for", message
        ), message
        *_, name = re.findall(r"\.entry _Z\d+kernel_(\w+?)jPvit\(", "\n".join(lines[: int(line)]))
        refused.add(name)
    assert refused and refused <= FEATURES.keys()
    return FEATURES.keys() - refused


@pytest.mark.parametrize("target", TARGETS)
def test_table_matches_ptxas(target):
    """The constants of target.cuh, the functions that need them, and ptxas agree."""
    has = {name: name in taken_by_ptxas(target) for name in FEATURES}
    constants = [f"static_assert(has_{name} == {str(there).lower()});" for name, there in has.items()]
    cubin(kernel([*constants, *(f"{{ {FEATURES[name][1]} }}" for name, there in has.items() if there)]), target)
    absent = [f"{{ {FEATURES[name][1]} }}" for name, there in has.items() if not there]
    if absent:
        with pytest.raises(AssertionError) as refused:
            cubin(kernel(absent), target)
        log = str(refused.value)
        assert len(re.findall(r"static assertion failed with .* needs sm_", log)) == len(absent)
        assert log.count("error:") == len(absent) and "ptxas" not in log


def named_by(text: str) -> set[str]:
    """Return the targets at the end of a compiler message, without targets that NVRTC does not support."""
    if "or a later target with a or f" in text:
        least = int(re.search(r"\d+", text).group())
        return {target for target in TARGETS if target[-1] in "af" and int(re.search(r"\d+", target).group()) >= least}
    if "or a later target" in text:
        return {target for target in TARGETS if not target.startswith("sm_90")}
    named = [target for target in re.findall(r"sm_\d+a?", text) if target in TARGETS]
    return {*named, *(target.replace("a", "f") for target in named if "with f for a" in text)}


@pytest.mark.parametrize("name", FEATURES)
def test_message_names_targets_that_have_it(name):
    """On sm_90, the message of a static_assert contains the missing feature's qualifier, and exactly the targets with
    the feature."""
    instruction, statement = FEATURES[name]
    with pytest.raises(AssertionError) as refused:
        cubin(kernel([statement]), "sm_90")
    what, targets = re.search(r'failed with "(.*?) needs (.*?)"', str(refused.value)).groups()
    assert what.split()[0] in instruction
    assert {target for target in TARGETS if name in taken_by_ptxas(target)} == named_by(targets) != set()


def test_the_table_is_complete():
    """The statements of this module use each feature of the table, and each function of sm100.cuh needs a feature."""
    rows = re.findall(r"^CUDA_TMA_FEATURE\((\w+),", (FOLDER / "target.cuh").read_text(), re.M)
    assert rows == list(FEATURES)
    functions = re.findall(r"^__device__ void \w+\(.*?^}", (FOLDER / "sm100.cuh").read_text(), re.M | re.S)
    assert len(functions) == 20
    assert all(len(re.findall(r"require_(\w+)<Policy>", text)) == 1 for text in functions)
    assert set(re.findall(r"require_(\w+)<Policy>", "".join(functions))) <= set(rows)


def test_features_can_be_queried():
    """The statement ``if constexpr (has_scatter4)`` in a template compiles for a target that lacks scatter4."""
    source = kernel(["save<char>(map, tile);"]).replace(
        'extern "C"',
        "template <typename T> __device__ void save(const TensorMap& map, T* tile) {"
        " if constexpr (has_scatter4) store_scatter4(map, 0, {0, 1, 2, 3}, tile);"
        ' else store(map, Coordinates{0, 0}, tile); }\nextern "C"',
    )
    assert ".tile::scatter4" not in ptx(source)
    assert ".tile::scatter4" in ptx(source, "compute_100a")


@pytest.mark.parametrize("target", WHOLE)
def test_everything_compiles(target):
    assert cubin(kernel(statements()), target).startswith(b"\x7fELF")


def test_nvcc(tmp_path):
    """The host pass of nvcc parses the kernels of all features. In the host pass, the table of target.cuh has all
    features."""
    done = nvcc(kernel(statements()), "sm_100a", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tile::scatter4 needs sm_100a" in nvcc(kernel([FEATURES["scatter4"][1]]), "sm_90a", tmp_path).stderr


def test_nothing_is_left_out():
    """The statements of this module contain each function of sm100.cuh, so the compiler would refuse a wrong
    instruction."""
    defined = defined_in("sm100.cuh")
    # The header has 20 functions and a constructor, but some functions of cta_group2 have the names of other functions.
    assert len(defined) == 15
    assert defined <= words(statements())
    with pytest.raises(AssertionError, match="Ptx assembly aborted due to errors"):
        cubin(kernel(['asm volatile("cp.async.bulk.tensor.2d.nonsense;");']), "sm_100a")
