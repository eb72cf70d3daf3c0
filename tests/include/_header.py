"""The functions and values that several tests of the device header share."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from cuda.bindings import nvrtc

from cuda_tma._include_path import include_path
from cuda_tma.enums import TensorMapSwizzle

HEADER = Path(include_path(), "cuda_tma", "tma.cuh")
FOLDER = HEADER.parent
TARGETS = ("sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a")
COORDINATES = ("x", "x, y", "x, y, 4", "x, y, 0, 1", "x, y, 0, 1, 2u")
OFFSETS = {3: "1", 4: "1, y", 5: "1, 2, 3u"}
POLICIES = ("", ", evict_last()")
REDUCTIONS = ("add", "min", "max", "inc", "dec", "bit_and", "bit_or", "bit_xor")


def compile_source(
    source: str, target: str, *include_path: str, std: str = "c++17", options: Iterable[str] = ()
) -> tuple[object, str]:
    """Return the NVRTC program of a source and the compilation log. Raise an AssertionError with the log if NVRTC
    refuses the source."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={target}", f"--std={std}", *options]
    options += [f"--include-path={folder}" for folder in (HEADER.parents[1], *include_path)]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    # NVRTC writes the log into a separate bytes object, because Python shares the object ``b" "``.
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1] + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.decode().strip("\0\n ")
    assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, text
    return program, text


@cache
def cubin(source: str, target: str, *include_path: str) -> bytes:
    """Return the machine code of a source that the front end compiles without a warning.

    A ptxas message that recommends multicast for certain targets does not count as a warning.
    """
    program, log = compile_source(source, target, *include_path)
    assert "warning #" not in log, log
    code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, code)
    return code


def ptx(source: str, target: str = "compute_90a", *, options: Iterable[str] = ()) -> str:
    program, _ = compile_source(source, target, options=options)
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    return text.decode()


def instructions(text: str) -> list[str]:
    """Return the sorted lines of a PTX text without the numbers of registers. The order of the lines and the number of
    address conversions vary."""
    return sorted(re.sub(r"%\w+(<\d+>)?", "%", line) for line in text.splitlines() if "\tcvta." not in line)


def tensor_statements() -> list[str]:
    """Return every tensor copy of tma.cuh, for each of its ranks, with and without a cache policy."""
    tiled = [
        "load(tile, map, full, Coordinates{{{at}}}{policy});",
        "load_multicast(tile, map, full, Coordinates{{{at}}}, 3{policy});",
        "store(map, Coordinates{{{at}}}, tile{policy});",
        "prefetch(map, Coordinates{{{at}}}{policy});",
        *(f"reduce<Reduction::{op}>(map, Coordinates{{{{{{at}}}}}}, tile{{policy}});" for op in REDUCTIONS),
    ]
    im2col = [
        "load_im2col(tile, map, full, Coordinates{{{at}}}, Offsets{{{offsets}}}{policy});",
        "load_im2col_multicast(tile, map, full, Coordinates{{{at}}}, Offsets{{{offsets}}}, 3{policy});",
        "store_im2col(map, Coordinates{{{at}}}, tile{policy});",
        "prefetch_im2col(map, Coordinates{{{at}}}, Offsets{{{offsets}}}{policy});",
        *(f"reduce_im2col<Reduction::{op}>(map, Coordinates{{{{{{at}}}}}}, tile{{policy}});" for op in REDUCTIONS),
    ]
    return [
        statement.format(at=at, offsets=OFFSETS.get(rank), policy=policy)
        for (rank, at), policy in product(enumerate(COORDINATES, 1), POLICIES)
        for statement in tiled + im2col * (rank in OFFSETS)
    ]


BULK_TYPES = {
    "add": "u32 s32 u64 f16 bf16 f32 f64", "min": "u32 s32 u64 s64 f16 bf16", "max": "u32 s32 u64 s64 f16 bf16",
    "inc": "u32", "dec": "u32", "bit_and": "b32 b64", "bit_or": "b32 b64", "bit_xor": "b32 b64",
}  # fmt: skip
SENT_TYPES = {
    "add": "u32 s32 u64", "min": "u32 s32", "max": "u32 s32", "inc": "u32", "dec": "u32",
    "bit_and": "b32", "bit_or": "b32", "bit_xor": "b32",
}  # fmt: skip
OTHER_STATEMENTS = [
    *(
        statement.format(policy=policy)
        for statement in (
            "load_bulk(tile, global, 1024, full{policy});",
            "load_bulk_multicast(tile, global, 1024, full, 3{policy});",
            "store_bulk(global, tile, 1024{policy});",
            "prefetch_bulk(global, 1024{policy});",
            *(
                f"reduce_bulk<Reduction::{op}, BulkType::{name}>(global, tile, 1024{{policy}});"
                for op, names in BULK_TYPES.items()
                for name in names.split()
            ),
        )
        for policy in ("", ", evict_first()", ", evict_normal()", ", evict_last(0.5f)")
    ),
    "full.init(2); fence_barrier_init(); full.expect_tx(16); full.arrive_expect_tx(16);",
    "full.arrive(); full.arrive(3); full.arrive_at(1); full.arrive_at(full.in_cta(1).address());",
    "full.in_cta(x).arrive(); full.in_cta(1).arrive(2); full.in_cta(y).release_async_read();",
    "full.in_cta(1).expect_tx(16); full.in_cta(1).arrive_expect_tx(16); full.try_wait_cluster(1);",
    *(
        f"send_reduce_bulk<Reduction::{op}, BulkType::{name}>(tile, 1, tile, 512, full);"
        for op, names in SENT_TYPES.items()
        for name in names.split()
    ),
    "send_bulk(tile, 1, tile, 512, full); global[0] = cluster_address(tile, 1);",
    "if (full.try_wait(1) && full.try_wait(0, 1000)) full.wait(1);",
    "full.wait_cluster(1);",
    "full.invalidate();",
    "commit_group(); wait_group(); wait_group<3>(); wait_group_read(); wait_group_read<1>();",
    "fence_proxy_async(); fence_proxy_async_cluster(); fence_proxy_async_global(); fence_proxy_async_all();",
    "global[0] = evict_unchanged().bits + evict_first(0.25f).bits;",
    "fence_tensor_map_release(); fence_tensor_map_release_sys(); fence_tensor_map_acquire(map);",
    "refuse_store_at(Coordinates{x, 0});",
    "prefetch_tensor_map(map); prefetch_tensor_map(as_tensor_map(twin)); prefetch_tensor_map(*map_address(map));",
    "if (elect_one()) global[cluster_cta_rank() + cluster_cta_count()] = smem_address(tile) + full.address();",
    "cluster_arrive_relaxed(); cluster_wait(); cluster_arrive(); cluster_wait();",
    "cluster_sync(); griddepcontrol_wait(); griddepcontrol_launch_dependents();",
    *(
        f"global[swizzled<{mode.name}>(x, y)] = swizzle<{mode.name}>(x) + swizzle_span<{mode.name}>();"
        for mode in TensorMapSwizzle
        if mode
    ),
    "global[x] = swizzle<SWIZZLE_NONE>(x) + swizzle_alignment<SWIZZLE_NONE>();",
]


def kernel(statements: list[str]) -> str:
    """Return a kernel that executes all given statements. The struct `Twin` replaces the driver's CUtensorMap."""
    return f"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
struct alignas(64) Twin {{ unsigned long long opaque[16]; }};
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, const __grid_constant__ Twin twin,
                                  unsigned* global, int x, unsigned y) {{
    __shared__ alignas(1024) char tile[1024];
    __shared__ Barrier full;
    {" ".join(statements)}
}}
"""


def defined_in(name: str) -> set[str]:
    """Return the names of the functions that a header defines."""
    text = (FOLDER / name).read_text()
    function = r"^ *(?:__host__ )?__device__ (?:inline |constexpr )*[\w:&<> ]+?[ &](?!operator\b)(\w+)\("
    return set(re.findall(function, text, re.M))


def words(statements: list[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(statements)))


def included_by(name: str) -> set[str]:
    """Return the headers that a header includes, directly or through other headers."""
    found = set(re.findall(r"#include <cuda_tma/(\w+\.cuh)>", (FOLDER / name).read_text()))
    return found.union(*map(included_by, found))


def nvcc(source: str, target: str, folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Run the host pass and the device pass of nvcc. Skip the test if nvcc is not on PATH."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on PATH")
    (folder / "kernel.cu").write_text(source)
    architecture = f"-gencode=arch={target.replace('sm', 'compute')},code={target}"
    command = ["nvcc", "-std=c++17", architecture, "-Werror", "all-warnings", f"-I{HEADER.parents[1]}", *options, "-c"]
    done = subprocess.run(
        [*command, folder / "kernel.cu", "-o", folder / "kernel.o"], capture_output=True, text=True, check=False
    )
    if "nsupported gpu architecture" in done.stderr:
        pytest.skip(f"this nvcc does not support {target}")
    return done
