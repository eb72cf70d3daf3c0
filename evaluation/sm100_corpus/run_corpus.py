"""Run kernels of Triton, TileLang, CuTe DSL and CUTLASS for sm_100 or sm_120 on the simulator, and compare with NumPy.

The versions are triton 3.9.0, tilelang 0.1.15, nvidia-cutlass-dsl 4.8.1 and torch 2.13.0+cpu. CuTe DSL's kernels are
examples of CUTLASS, which themselves compare with torch. The examples of CUTLASS need a checkout of
7107b05535f8977f5ecb9d01ee203205b1fd9bc4. The script needs no GPU. A kernel is right if its program ends with status 0,
without a difference and without an error. ``--build`` is a folder for the programs of CUTLASS that nvcc compiles.

Examples
--------
    python evaluation/sm100_corpus/run_corpus.py --cutlass ../cutlass --schedules 1 4
    python evaluation/sm100_corpus/run_corpus.py --target sm_120 --cutlass ../cutlass --schedules 1 4
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from cutlass_programs import PROGRAMS, built

HERE = Path(__file__).resolve().parent
_KERNEL = "cute/blackwell/kernel"
_TUTORIAL = "cute/blackwell/tutorial/tutorial_gemm"
_ONE = "--mma_tiler_mn 128,128 --cluster_shape_mn 1,1 --iterations 1"
_PAIR = "--mma_tiler_mn 256,128 --cluster_shape_mn 2,1 --use_2cta_instrs --iterations 1"
_F16 = "--ab_dtype Float16 --c_dtype Float16 --acc_dtype Float32"
_SMALL = "--mma_tiler_mn 128,64 --cluster_shape_mn 1,1 --iterations 1"
_SCALED = f"{_KERNEL}/blockscaled_gemm/dense_blockscaled_gemm_persistent.py"
_SCALED_PAIR = "--mma_tiler_mn 256,128 --cluster_shape_mn 2,1 --iterations 1"
_TYPES = "--a_dtype {} --b_dtype {} --sf_dtype {} --sf_vec_size {}"
_NVFP4 = _TYPES.format("Float4E2M1FN", "Float4E2M1FN", "Float8E4M3FN", 16)
_MXFP4 = _TYPES.format("Float4E2M1FN", "Float4E2M1FN", "Float8E8M0FNU", 32)
_MXFP8 = _TYPES.format("Float8E4M3FN", "Float8E4M3FN", "Float8E8M0FNU", 32)
# The table maps a short name to a script of CUTLASS and its arguments. The table omits scripts whose kernels have
# errors; docs/found/blackwell.md lists them.
CUTE = {
    "tutorial-0": f"{_TUTORIAL}/fp16_gemm_0.py --mnk 128,256,128",
    "tutorial-1": f"{_TUTORIAL}/fp16_gemm_1.py --mnk 256,256,128",
    "tutorial-2": f"{_TUTORIAL}/fp16_gemm_2.py --mnk 256,256,128",
    "tutorial-3": f"{_TUTORIAL}/fp16_gemm_3.py --mnk 256,256,128",
    "tutorial-3-1": f"{_TUTORIAL}/fp16_gemm_3_1.py --mnk 256,256,128",
    "tutorial-4": f"{_TUTORIAL}/fp16_gemm_4.py --mnk 256,256,128",
    "tutorial-5": f"{_TUTORIAL}/fp16_gemm_5.py --mnk 256,64,128",
    "dense-f16": f"{_KERNEL}/dense_gemm/dense_gemm.py {_F16} {_ONE} --mnkl 128,128,128,1 --use_tma_store",
    "dense-f16-2-ctas": f"{_KERNEL}/dense_gemm/dense_gemm.py {_F16} {_PAIR} --mnkl 256,128,128,1 --use_tma_store",
    "dense-tf32": f"{_KERNEL}/dense_gemm/dense_gemm.py --ab_dtype TFloat32 --c_dtype Float32 --acc_dtype Float32 "
    f"{_SMALL} --mnkl 128,64,64,1",
    "dense-s8": f"{_KERNEL}/dense_gemm/dense_gemm.py --ab_dtype Int8 --c_dtype Int32 --acc_dtype Int32 {_SMALL} "
    "--mnkl 128,64,128,1",
    "dense-e4m3": f"{_KERNEL}/dense_gemm/dense_gemm.py --ab_dtype Float8E4M3FN --c_dtype Float32 --acc_dtype Float32 "
    f"{_SMALL} --mnkl 128,64,128,1",
    "dense-m-major": f"{_KERNEL}/dense_gemm/dense_gemm.py --ab_dtype BFloat16 --c_dtype BFloat16 --acc_dtype Float32 "
    f"{_SMALL} --mnkl 128,64,128,1 --a_major m --b_major n",
    "persistent": f"{_KERNEL}/dense_gemm/dense_gemm_persistent.py {_F16} {_ONE} --mnkl 256,256,128,1 --use_tma_store",
    "persistent-2-ctas": f"{_KERNEL}/dense_gemm/dense_gemm_persistent.py --ab_dtype BFloat16 --c_dtype Float32 "
    f"--acc_dtype Float32 {_PAIR} --mnkl 256,256,128,1 --use_tma_store",
    "persistent-e4m3-2-ctas": f"{_KERNEL}/dense_gemm/dense_gemm_persistent.py --ab_dtype Float8E4M3FN "
    f"--c_dtype Float16 --acc_dtype Float32 {_PAIR} --mnkl 256,128,256,1 --use_tma_store",
    "persistent-m64": f"{_KERNEL}/dense_gemm/dense_gemm_persistent.py --ab_dtype Float16 --c_dtype Float16 "
    "--acc_dtype Float16 --mma_tiler_mn 64,64 --cluster_shape_mn 1,1 --mnkl 64,64,128,1 --iterations 1",
    "clc": f"{_KERNEL}/dense_gemm/dense_gemm_persistent_dynamic.py {_F16} {_ONE} --mnkl 256,256,128,1 --use_tma_store",
    "clc-2-ctas": f"{_KERNEL}/dense_gemm/dense_gemm_persistent_dynamic.py {_F16} {_PAIR} --mnkl 512,256,128,1 "
    "--use_tma_store",
    "prefetch": f"{_KERNEL}/dense_gemm/dense_gemm_persistent_prefetch.py {_F16} {_ONE} --mnkl 128,128,256,1 "
    "--use_tma_store",
    "software-pipeline": f"{_KERNEL}/dense_gemm/dense_gemm_software_pipeline.py {_F16} {_ONE} --mnkl 128,128,256,1",
    "grouped": f"{_KERNEL}/grouped_gemm/grouped_gemm.py {_F16} {_SMALL} --num_groups 2 --tensormap_update_mode SMEM "
    "--problem_sizes_mnkl (128,64,64,1),(128,128,128,1)",
    "attention": f"{_KERNEL}/attention/fmha/fmha.py --q_shape 1,256,1,64 --k_shape 1,256,1,64 --qk_acc_dtype Float32 "
    "--pv_acc_dtype Float32 --mma_tiler_mn 128,128 --in_dtype Float16 --out_dtype Float16 --iterations 1",
    "attention-causal": f"{_KERNEL}/attention/fmha/fmha.py --q_shape 1,256,1,64 --k_shape 1,256,1,64 --is_causal "
    "--is_persistent --iterations 1",
    "attention-e4m3": f"{_KERNEL}/attention/fmha/fmha.py --q_shape 1,256,2,64 --k_shape 1,128,1,64 "
    "--in_dtype Float8E4M3FN --out_dtype Float16 --lse_calculation --iterations 1",
    "attention-mla": f"{_KERNEL}/attention/mla/mla_decode_fp16.py",
    "mamba2": f"{_KERNEL}/attention/mamba2_ssd/mamba2_ssd.py --gbehcdln 2,2,2,2,2,64,128,128",
    "blockwise": f"{_KERNEL}/blockwise_gemm/blockwise_gemm.py --mnkl 128,128,256,1",
    "blockwise-grouped": f"{_KERNEL}/blockwise_gemm/contiguous_grouped_gemm.py --mnkl 128,128,256,2",
    "rmsnorm": f"{_KERNEL}/rmsnorm/rmsnorm.py --M 16 --N 1024 --iterations 1 --warmup_iterations 0",
    "nvfp4": f"{_SCALED} {_NVFP4} {_ONE} --mnkl 128,128,256,1",
    "nvfp4-2-ctas": f"{_SCALED} {_NVFP4} {_SCALED_PAIR} --mnkl 256,128,256,1",
    "nvfp4-ue8m0": f"{_SCALED} {_TYPES.format('Float4E2M1FN', 'Float4E2M1FN', 'Float8E8M0FNU', 16)} {_ONE} "
    "--mnkl 256,128,256,1",
    "mxfp4-n192": f"{_SCALED} {_MXFP4} --mma_tiler_mn 128,192 --cluster_shape_mn 1,1 --iterations 1 "
    "--mnkl 128,192,256,1",
    "mxfp4-2-ctas": f"{_SCALED} {_MXFP4} --mma_tiler_mn 256,256 --cluster_shape_mn 2,1 --iterations 1 "
    "--mnkl 256,256,256,1",
    "mxfp8-2-ctas": f"{_SCALED} {_MXFP8} --mma_tiler_mn 256,64 --cluster_shape_mn 2,1 --iterations 1 "
    "--mnkl 256,64,256,1",
    "mxfp8-m-major": f"{_SCALED} {_MXFP8} --a_major m --b_major n {_ONE} --mnkl 128,128,256,1",
    "e4m3-e5m2": f"{_SCALED} {_TYPES.format('Float8E4M3FN', 'Float8E5M2', 'Float8E8M0FNU', 32)} {_SMALL} "
    "--mnkl 128,64,256,1",
    "e4m3-e2m1": f"{_SCALED} {_TYPES.format('Float8E4M3FN', 'Float4E2M1FN', 'Float8E8M0FNU', 32)} {_ONE} "
    "--mnkl 128,128,256,1",
    "nvfp4-amax": f"{_SCALED[:-3]}_amax.py --ab_dtype Float4E2M1FN --sf_dtype Float8E8M0FNU --sf_vec_size 16 {_ONE} "
    "--mnkl 128,128,256,1",
    "nvfp4-prefetch": f"{_SCALED[:-3]}_prefetch.py --ab_dtype Float4E2M1FN --sf_dtype Float8E4M3FN --sf_vec_size 16 "
    f"{_ONE} --mnkl 128,128,256,1",
    "nvfp4-grouped": f"{_KERNEL}/blockscaled_grouped_gemm/grouped_blockscaled_gemm.py --num_groups 2 {_ONE} "
    "--ab_dtype Float4E2M1FN --sf_dtype Float8E8M0FNU --sf_vec_size 16 "
    "--problem_sizes_mnkl (128,128,256,1),(256,128,128,1)",
    "ext-mxfp8": "cute_ext/blackwell/dense_block_scaled_gemm.py --mnkl 128,128,256,1",
    "ext-dense": "cute_ext/blackwell/dense_gemm.py",
    "ext-2-ctas": "cute_ext/blackwell/dense_gemm_2sm.py",
    "ext-pipeline": "cute_ext/blackwell/dense_gemm_cute_pipeline.py",
}

_GEFORCE = "cute/blackwell_geforce/kernel"
_SCALED = f"{_GEFORCE}/blockscaled_gemm/dense_blockscaled_gemm_persistent"
_E8M0 = "--sf_dtype Float8E8M0FNU --sf_vec_size 32"
CUTE_OF_SM120 = {
    "nvfp4-cooperative": f"{_SCALED}_cooperative.py --mnkl 128,128,256,1",
    "nvfp4-pingpong": f"{_SCALED}_pingpong.py --mnkl 128,128,256,1",
    "mxfp4-cooperative": f"{_SCALED}_cooperative.py --mnkl 128,128,256,1 {_E8M0}",
    "dense-f16": f"{_GEFORCE}/dense_gemm/dense_gemm.py --mnkl 128,128,128,1",
}


class Target(NamedTuple):
    """A target, with its compute capability, the folder of its scripts, and its examples of CUTLASS."""

    capability: str
    folder: Path
    cute: dict[str, str]


TARGETS = {
    "sm_100": Target("10.0", HERE, CUTE),
    "sm_120": Target("12.0", HERE.parent / "sm120_corpus", CUTE_OF_SM120),
}


class Outcome(NamedTuple):
    """One run, with the status of the program, the last line of the command, and the seconds."""

    status: int
    words: str
    seconds: float


def cases(target: Target, given: argparse.Namespace) -> dict[str, list[str]]:
    """Return the command of each kernel, by runtime and name; build the programs of C++ whose names match."""
    runtimes, cutlass = given.runtime, given.cutlass
    found: dict[str, list[str]] = {}
    for file in ("triton_kernels.py", "triton_scaled.py", "tilelang_kernels.py", "tilelang_scaled.py"):
        script, runtime = target.folder / file, file.split("_")[0]
        if runtime in runtimes and script.exists():
            listed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
            found |= {f"{runtime}/{name}": [sys.executable, str(script), name] for name in listed.split()}
    if "cute" in runtimes and cutlass is not None:
        examples = cutlass / "examples/python/CuTeDSL"
        for name, line in target.cute.items():
            script, *arguments = line.split()
            found[f"cute/{name}"] = [sys.executable, str(examples / script), *arguments]
    if given.build is not None and cutlass is not None and target is TARGETS["sm_100"]:
        for name in PROGRAMS:
            if re.search(given.only, f"cutlass/{name}"):
                found[f"cutlass/{name}"] = built(name, cutlass, given.build, given.include)
    return found


def ran(target: Target, command: list[str], schedules: int, cutlass: Path | None) -> Outcome:
    """Run a program on the simulator, under the given number of schedules."""
    environ = {**os.environ}
    if cutlass is not None:
        paths = [str(cutlass / "examples/python/CuTeDSL"), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    sanitize = [sys.executable, "-m", "cuda_tma", "sanitize", "--compute-capability", target.capability]
    began = time.perf_counter()
    done = subprocess.run(
        [*sanitize, "--require-judged", "--time-limit", "600", "--schedules", str(schedules), "--", *command],
        capture_output=True,
        text=True,
        env=environ,
        stdin=subprocess.DEVNULL,
    )
    printed = done.stdout + "\n" + done.stderr
    last = re.findall(r"cuda-tma: (\d+ launch.*)$", printed, re.MULTILINE)
    errors = re.findall(r"^(error\[.*|\w*Error: .*)$", printed, re.MULTILINE)[:1]
    return Outcome(done.returncode, "; ".join([*errors, *last[-1:]]), time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cutlass", type=Path, help="checkout of CUTLASS (default: CuTe DSL's kernels are left out)")
    parser.add_argument(
        "--target", choices=[*TARGETS], default="sm_100", help="target of the kernels (default: sm_100)"
    )
    parser.add_argument("--runtime", nargs="+", default=["triton", "tilelang", "cute"], help="runtimes (default: all)")
    parser.add_argument("--build", type=Path, help="folder of CUTLASS's programs (default: they are left out)")
    parser.add_argument("--include", nargs="*", default=[], help="folders of headers for nvcc, such as curand's")
    parser.add_argument("--only", default="", help="expression that a kernel's name contains")
    parser.add_argument("--schedules", nargs="+", type=int, default=[1, 4], help="numbers of schedules (default: 1 4)")
    arguments = parser.parse_args()
    wrong, target = 0, TARGETS[arguments.target]
    for name, command in cases(target, arguments).items():
        if not re.search(arguments.only, name):
            continue
        for schedules in arguments.schedules:
            outcome = ran(target, command, schedules, arguments.cutlass)
            wrong += outcome.status != 0
            verdict = "right" if outcome.status == 0 else "WRONG"
            print(f"{verdict} {name}, {schedules} schedules, {outcome.seconds:.1f} s: {outcome.words}", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
