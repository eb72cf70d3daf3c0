"""The command line: its commands and what each takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..version import __version__
from .exit_status import Misuse
from .launch import argument
from .options import OPTIONS, capability, data_type, dtype, integer, sizes
from .sanitize import EXIT_STATUS, suppression

__all__ = ["parser"]

_MOST_STEPS = 4_000_000  # of Device.launch, which is not imported for the other commands
_SCHEDULES = 4
_MAP = "256 hex digits, words as C prints them, a file, or - for standard input"

Run = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """One that raises what it would print, and takes no part of an option's name for the whole."""

    def __init__(self, **keywords: Any):
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{message} (see {self.prog} --help)")


_DESCRIPTION = (
    "Explain tensor maps (the 128-byte CUtensorMap) and CUDA errors; run kernels that use tensor maps without a GPU, "
    "and find their races and hangs."
)


def parser(runs: Mapping[str, Run]) -> argparse.ArgumentParser:
    """A parser whose result has ``run``: what `runs` holds for the command."""
    made = _Parser(prog="cuda-tma", description=_DESCRIPTION)
    made.add_argument("--version", action="version", version=f"cuda-tma {__version__}")
    commands = made.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, (text, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=runs[name])
        if name != "demo":
            command.add_argument("--json", action="store_true", help="print JSON, whatever comes of it")
        add_arguments(command)
    return made


def _add_check(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    _add_capability(command, "9.0", "of the device")
    command.add_argument("--warnings", action="store_true", help="also what is accepted and regretted")


def _add_decode(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    _add_capability(command, "10.0", "of the device that takes a map from --shape")


def _add_diff(command: argparse.ArgumentParser) -> None:
    command.add_argument("a", help=_MAP)
    command.add_argument("b", help="the other map, likewise")


def _add_suggest(command: argparse.ArgumentParser) -> None:
    command.add_argument("--shape", type=sizes, required=True, metavar="128x128", help="the tile's, outermost first")
    command.add_argument("--dtype", type=dtype, default="float32", metavar="bfloat16", help="float32 if not given")
    command.add_argument("--data-type", type=data_type, metavar="TFLOAT32", help="how the engine reads an element")
    _add_access(command, "how threads read the tile in shared memory; ldmatrix if not given")
    command.add_argument(
        "--smem-limit-bytes", type=integer, metavar="65536", help="of one load; if not given, a block's"
    )
    _add_capability(command, "9.0", "of the device")


def _add_layouts(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "written", nargs="?", metavar="WRITTEN", help="as one instruction leaves it, as wgmma.d:f32:64x32; none: a list"
    )
    command.add_argument("read", nargs="?", metavar="READ", help="as another takes it, as wgmma.a:e4m3")
    command.add_argument("--output", metavar="FILE", help="draw both beside each other, as SVG")
    command.epilog = "exit status: 0 if they are equal, 1 if they differ, 2 if the command line is wrong"


def _add_plot(command: argparse.ArgumentParser) -> None:
    command.add_argument("picture", nargs="?", metavar="{tile,banks,box,tiles}", help="what to draw")
    command.add_argument(
        "--html", metavar="FILE", help="write the swizzle explorer instead, with the map that is given"
    )
    _add_map(command)
    _add_capability(command, "10.0", "of the device that takes the map")
    command.add_argument(
        "--at", type=sizes, metavar="0x0", help="where the load starts, in tensor order; negative as --at=-1x0"
    )
    _add_access(command, "of banks: how threads read the tile in shared memory; column if not given")
    command.add_argument("--output", metavar="FILE", help="PNG, SVG or PDF, by its name")


def _add_access(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--access", choices=("row", "column", "ldmatrix"), help=text)


def _add_capability(command: argparse.ArgumentParser, default: str, text: str) -> None:
    command.add_argument(
        "--compute-capability",
        type=capability,
        default=capability(default),
        metavar=default,
        help=f"{text}, as 9.0, 90 or sm_90a; {default} if not given",
    )


def _add_map(command: argparse.ArgumentParser) -> None:
    """The two ways to give a map: its bytes, or the tensor and the options that make it."""
    command.add_argument("map", nargs="?", help=_MAP)
    group = command.add_argument_group("a map from a tensor, all in the tensor's own order")
    for option in OPTIONS:
        group.add_argument(option.flag, type=option.read, metavar=option.example, help=option.help)


def _add_nothing(command: argparse.ArgumentParser) -> None:
    pass


def _add_explain(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "text",
        nargs="*",
        help="an error (715, or what a log says), the fields of a map as CUTLASS, TensorRT-LLM or DeepGEMM print them, "
        "its 128 bytes, mbarrier 0x... with its 64 bits, or a file of any of them; standard input if not given",
    )
    _add_capability(command, "9.0", "of the device that takes the maps")


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--input", metavar="FILE", help="a picture, or a .npy of shape (rows, columns[, channels])")
    command.add_argument("--output", default="demo.png", metavar="FILE", help="before and after; demo.png if not given")
    command.add_argument("--emulate", action="store_true", help="use the emulator, whatever else there is")


def _add_run(command: argparse.ArgumentParser) -> None:
    _add_launch(command)
    command.add_argument("--output", metavar="DIR", help="write each array as the kernel left it: arg0.npy, ...")
    command.add_argument(
        "--timeline", metavar="FILE", help="draw warps, copies and mbarriers over time: .svg, or .html to be zoomed"
    )


def _add_sanitize(command: argparse.ArgumentParser) -> None:
    _add_launch(command)
    command.epilog = EXIT_STATUS
    command.add_argument("--strict", action="store_true", help="what is disputed is an error, and not advice")
    command.add_argument(
        "--schedules",
        type=integer,
        default=_SCHEDULES,
        metavar="N",
        help=f"under how many orders of asynchronous copies and threads to run it; {_SCHEDULES} if not given",
    )
    command.add_argument("--sarif", metavar="FILE", help="write the findings as SARIF 2.1.0")
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


def _add_launch(command: argparse.ArgumentParser) -> None:
    """What says which kernel is launched, and how."""
    command.add_argument("file", help="CUDA C++, or PTX if its name ends in .ptx")
    command.add_argument("--kernel", required=True, metavar="NAME", help="as C++ calls it; of PTX also its name there")
    for name, text in (("grid", "CTAs, x first; clusters, if --cluster is given"), ("block", "threads of a CTA")):
        command.add_argument(f"--{name}", type=sizes, required=True, metavar="4x1x1", help=text)
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
    command.add_argument("--seed", type=integer, default=0, metavar="1", help="of the random orders; 0 if not given")
    command.add_argument(
        "--max-steps",
        type=integer,
        default=_MOST_STEPS,
        metavar="100000",
        help=f"after which the kernel is taken not to end; {_MOST_STEPS} if not given",
    )
    _add_capability(command, "9.0", "of the GPU that is simulated")


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "check": ("what the driver would refuse in a map, and the remedy", _add_check),
    "decode": ("what a map says; with --shape, also its 128 bytes", _add_decode),
    "diff": ("where two maps differ, and what that does to a load", _add_diff),
    "explain": ("what an error, or a map that somebody printed, says; whether the map is at fault", _add_explain),
    "suggest": ("the swizzle and the largest legal box for a tile, and why", _add_suggest),
    "plot": ("draw a tile in shared memory, its banks, its box in the tensor, or the tensor in tiles", _add_plot),
    "layouts": ("where two layouts put the same element: fragments, tiles, tensor memory", _add_layouts),
    "info": ("versions, driver and devices of this machine", _add_nothing),
    "run": ("run a kernel without a GPU, and say what is wrong in it", _add_run),
    "sanitize": ("say what is wrong in a kernel, with line and remedy, without a GPU", _add_sanitize),
    "demo": ("blur a picture through TMA, simulated where there is no GPU, and check it", _add_demo),
}
