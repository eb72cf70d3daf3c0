"""The options of ``cuda-tma run`` and ``cuda-tma sanitize``: a kernel and its launch, or a program."""

from __future__ import annotations

import argparse
from typing import Any

from .judgement import EXIT_STATUS, SCHEDULES, SEED, STANDARD_OUTPUT, TIME_LIMIT_SECONDS, seconds, suppression
from .launch import argument
from .options import capability, integer, sizes

__all__ = ["add_capability", "add_launch", "add_sanitize"]

_MOST_STEPS = 4_000_000  # of Device.launch, which is not imported for the other commands
_USAGE = """cuda-tma sanitize [options] -- COMMAND...
       cuda-tma sanitize [options] LAUNCHES
       cuda-tma sanitize [options] FILE --kernel NAME --grid 4x1x1 --block 4x1x1 [--arg VALUE ...]"""


def add_capability(command: Any, default: str, text: str) -> None:
    """Add the option of a device's compute capability."""
    command.add_argument(
        "--compute-capability",
        type=capability,
        default=capability(default),
        metavar=default,
        help=f"{text}, as 9.0, 90 or sm_90a; {default} if not given",
    )


def add_launch(command: argparse.ArgumentParser) -> None:
    """Add the options that name a kernel, and how it is launched."""
    command.add_argument("file", help="CUDA C++, or PTX if its name ends in .ptx")
    command.add_argument("--kernel", required=True, metavar="NAME", help="as C++ calls it; of PTX also its name there")
    add_configuration(command, required=True)
    _add_limits(command)
    add_capability(command, "9.0", "of the GPU that is simulated")


def add_configuration(command: Any, *, required: bool) -> None:
    """Add the options of a configuration, of arguments, and of the compiler."""
    for name, text in (("grid", "CTAs, x first; clusters, if --cluster is given"), ("block", "threads of a CTA")):
        command.add_argument(f"--{name}", type=sizes, required=required, metavar="4x1x1", help=text)
    command.add_argument("--cluster", type=sizes, metavar="2", help="CTAs of a cluster")
    command.add_argument("--shmem-size", type=integer, default=0, metavar="65536", help="dynamic shared memory, bytes")
    command.add_argument(
        "--arg",
        action="append",
        type=argument,
        default=[],
        metavar="VALUE",
        help="of each parameter: 7, 2.5, float32[128x64] (zeros), random:float32[128x64], or a .npy file; for a plain "
        "TensorMap also the map's box and options: float32[128x64]@32x32,swizzle=128B; of a struct its bytes: hex:0100",
    )
    command.add_argument("--define", "-D", action="append", default=[], metavar="NAME=VALUE", help="a macro")
    command.add_argument("--include", "-I", action="append", default=[], metavar="DIR", help="folder of headers")
    command.add_argument(
        "--order",
        choices=("early", "late", "random"),
        default="early",
        help="when copies take effect; early if not given",
    )


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=integer, metavar="1", help=f"of the random orders; {SEED} if not given")
    command.add_argument(
        "--max-steps",
        type=integer,
        default=_MOST_STEPS,
        metavar="100000",
        help=f"steps of groups of threads, after which a kernel is taken not to end; {_MOST_STEPS} if not given",
    )
    command.add_argument(
        "--time-limit",
        type=seconds,
        default=TIME_LIMIT_SECONDS,
        metavar="SECONDS",
        help="of each launch under all its schedules, and of the loading of its PTX: then it ends with the findings "
        f"until then, and with exit status 3; {TIME_LIMIT_SECONDS:g} if not given",
    )


def add_sanitize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``sanitize``."""
    command.usage, command.epilog = _USAGE, EXIT_STATUS
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="launches that --record wrote; or CUDA C++, or PTX if its name ends in .ptx",
    )
    _add_judgement(command)
    _add_outputs(command)
    _add_filters(command)
    add_configuration(command.add_argument_group("the launch of one kernel of a FILE"), required=False)


def _add_judgement(command: argparse.ArgumentParser) -> None:
    add_capability(command, "9.0", "of the GPU that is simulated")
    command.add_argument(
        "--schedules",
        type=integer,
        metavar="N",
        help=f"under how many orders of asynchronous copies and threads to run a launch; {SCHEDULES} if not given",
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
        help="what is not to be reported, and why, as race:gemm.cu:41:the sum is an estimate; a place may also be a "
        "function, and have * in it",
    )
    command.add_argument(
        "--suppressions", action="append", default=[], metavar="FILE", help="the same, one a line; # begins a comment"
    )


def _add_outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help="write the launches and findings as JSON; without FILE to standard output, and the program's standard "
        "output goes to standard error",
    )
    command.add_argument("--sarif", metavar="FILE", help="write the findings as SARIF 2.1.0")
    command.add_argument(
        "--html", metavar="FILE", help="write one page with launches, findings, their lines and their timelines"
    )
    command.add_argument(
        "--record", metavar="FILE", help="write the judged launches with their memory; sanitize FILE judges them again"
    )


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kernel",
        metavar="REGEX",
        help="judge only launches of kernels in whose name it is found; of a FILE of C++ or PTX, the kernel's name",
    )
    command.add_argument(
        "--launch-skip", type=integer, default=0, metavar="N", help="do not judge the first N of these launches"
    )
    command.add_argument("--launch-count", type=integer, metavar="N", help="judge at most N launches; others still run")
