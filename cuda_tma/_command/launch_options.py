"""The options of ``cuda-tma run`` and ``cuda-tma sanitize``, for a kernel and its launch, or for a program."""

from __future__ import annotations

import argparse
from typing import Any

from .judgement import EXIT_STATUS, SCHEDULES, SEED, STANDARD_OUTPUT, TIME_LIMIT_SECONDS, seconds, suppression
from .launch import argument
from .options import capability, integer, sizes

__all__ = ["add_capability", "add_launch", "add_sanitize"]

# The defaults repeat those of Device.launch, because the import of the simulator would slow down other commands.
_MOST_STEPS = 4_000_000
_USAGE = """cuda-tma sanitize [options] -- COMMAND...
       cuda-tma sanitize [options] LAUNCHES
       cuda-tma sanitize [options] FILE --kernel NAME --grid 4x1x1 --block 4x1x1 [--arg VALUE ...]"""


def add_capability(command: Any, default: str, text: str) -> None:
    """Add the option for the compute capability of the simulated device."""
    command.add_argument(
        "--compute-capability",
        type=capability,
        default=capability(default),
        metavar=default,
        help=f"{text}, such as 9.0, 90 or sm_90a (default: {default})",
    )


def add_launch(command: argparse.ArgumentParser) -> None:
    """Add the options of a kernel and its launch."""
    command.add_argument("file", help="CUDA C++, or PTX if its name ends in .ptx")
    command.add_argument(
        "--kernel", required=True, metavar="NAME", help="name of the kernel in C++; for PTX, also its name there"
    )
    add_configuration(command, required=True)
    _add_limits(command)
    add_capability(command, "9.0", "compute capability of the simulated GPU")


def add_configuration(command: Any, *, required: bool) -> None:
    """Add the options for a configuration, for arguments, and for the compiler."""
    for name, text in (
        ("grid", "number of CTAs, x first; of clusters, if --cluster is given"),
        ("block", "threads of a CTA, x first"),
    ):
        command.add_argument(f"--{name}", type=sizes, required=required, metavar="XxYxZ", help=text)
    command.add_argument("--cluster", type=sizes, metavar="XxYxZ", help="CTAs of a cluster, x first")
    command.add_argument("--shmem-size", type=integer, default=0, metavar="N", help="dynamic shared memory in bytes")
    command.add_argument(
        "--arg",
        action="append",
        type=argument,
        default=[],
        metavar="VALUE",
        help="argument of the next parameter: 7, 2.5, float32[128x64] (zeros), random:float32[128x64] or a .npy "
        "file; for a plain TensorMap also the box and options of the map: float32[128x64]@32x32,swizzle=128B; for a "
        "struct its bytes: hex:0100",
    )
    command.add_argument("--define", "-D", action="append", default=[], metavar="NAME=VALUE", help="define a macro")
    command.add_argument("--include", "-I", action="append", default=[], metavar="DIR", help="add a folder of headers")
    command.add_argument(
        "--order",
        choices=("early", "late", "random"),
        default="early",
        help="when asynchronous copies take effect (default: early)",
    )


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=integer, metavar="N", help=f"seed of the random orders (default: {SEED})")
    command.add_argument(
        "--max-steps",
        type=integer,
        default=_MOST_STEPS,
        metavar="N",
        help="steps after which a kernel counts as endless; a step is an instruction of a group of threads (default: "
        f"{_MOST_STEPS})",
    )
    command.add_argument(
        "--time-limit",
        type=seconds,
        default=TIME_LIMIT_SECONDS,
        metavar="SECONDS",
        help="most time for a launch under all its schedules, and for loading its PTX; a launch that reaches it ends "
        f"with the findings so far and exit status 3 (default: {TIME_LIMIT_SECONDS:g})",
    )


def add_sanitize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``cuda-tma sanitize``."""
    command.usage, command.epilog = _USAGE, EXIT_STATUS
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="launches that --record wrote, PTX (name ends in .ptx) or CUDA C++",
    )
    _add_judgement(command)
    _add_outputs(command)
    _add_filters(command)
    _add_gpu(command.add_argument_group("a program on a GPU"))
    add_configuration(command.add_argument_group("the launch of one kernel of a FILE"), required=False)


def _add_judgement(command: argparse.ArgumentParser) -> None:
    add_capability(command, "9.0", "compute capability of the simulated GPU")
    command.add_argument(
        "--schedules",
        type=integer,
        metavar="N",
        help=f"number of orders of asynchronous copies and threads under which each launch runs (default: {SCHEDULES})",
    )
    _add_limits(command)
    command.add_argument("--strict", action="store_true", help="report disputed findings as errors, not as advice")
    command.add_argument(
        "--require-judged", action="store_true", help="exit with status 3 if a launch could not be judged"
    )
    command.add_argument(
        "--suppress",
        action="append",
        type=suppression,
        default=[],
        metavar="KIND:PLACE:REASON",
        help="suppress a finding, with a reason: race:gemm.cu:41:the sum is an estimate; PLACE may also be a function, "
        "and may contain *",
    )
    command.add_argument(
        "--suppressions",
        action="append",
        default=[],
        metavar="FILE",
        help="read suppressions from a file, one per line; # begins a comment",
    )
    command.add_argument(
        "--baseline",
        metavar="FILE",
        help="report only findings that an earlier report (--sarif FILE or --json FILE) does not contain",
    )


def _add_outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help="write the launches and findings as JSON; without FILE, write to standard output and redirect the "
        "program's standard output to standard error",
    )
    command.add_argument("--sarif", metavar="FILE", help="write the findings as SARIF 2.1.0")
    command.add_argument(
        "--html", metavar="FILE", help="write a page with launches, findings, source lines and timelines"
    )
    command.add_argument(
        "--record", metavar="FILE", help="write the judged launches with their memory; replay them with sanitize FILE"
    )


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kernel",
        metavar="REGEX",
        help="judge only launches of kernels whose name matches; for C++ or PTX, the name of the kernel",
    )
    command.add_argument(
        "--launch-skip", type=integer, default=0, metavar="N", help="skip the first N matching launches"
    )
    command.add_argument(
        "--launch-count", type=integer, metavar="N", help="judge at most N launches; the others run unjudged"
    )


def _add_gpu(command: Any) -> None:
    command.add_argument(
        "--on-gpu",
        action="store_true",
        help="let the launches of a program go to its GPU, judge the first launch of each configuration on the "
        "simulator, and compare the memory after it",
    )
    command.add_argument(
        "--every", type=integer, metavar="N", help="also judge every Nth launch of a configuration (default: the first)"
    )
    command.add_argument(
        "--configurations", type=integer, metavar="N", help="configurations of a kernel that are judged (default: 16)"
    )
    command.add_argument(
        "--capture-bytes",
        type=integer,
        metavar="N",
        help="most memory that a judged launch may reach; others run unjudged (default: 268435456)",
    )
