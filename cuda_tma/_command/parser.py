"""The command line: its commands and what each takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .. import __version__
from .exit_status import Misuse
from .launch_options import add_capability, add_launch, add_sanitize
from .options import OPTIONS, data_type, dtype, integer, sizes

__all__ = ["parser"]

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
        if name not in ("demo", "sanitize"):
            command.add_argument("--json", action="store_true", help="print JSON, whatever comes of it")
        add_arguments(command)
    return made


def _add_check(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    add_capability(command, "9.0", "of the device")
    command.add_argument("--warnings", action="store_true", help="also what is accepted and regretted")


def _add_decode(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    add_capability(command, "10.0", "of the device that takes a map from --shape")


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
    add_capability(command, "9.0", "of the device")


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
    add_capability(command, "10.0", "of the device that takes the map")
    command.add_argument(
        "--at", type=sizes, metavar="0x0", help="where the load starts, in tensor order; negative as --at=-1x0"
    )
    _add_access(command, "of banks: how threads read the tile in shared memory; column if not given")
    command.add_argument("--output", metavar="FILE", help="PNG, SVG or PDF, by its name")


def _add_access(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--access", choices=("row", "column", "ldmatrix"), help=text)


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
    add_capability(command, "9.0", "of the device that takes the maps")


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--input", metavar="FILE", help="a picture, or a .npy of shape (rows, columns[, channels])")
    command.add_argument("--output", default="demo.png", metavar="FILE", help="before and after; demo.png if not given")
    command.add_argument("--emulate", action="store_true", help="use the emulator, whatever else there is")


def _add_run(command: argparse.ArgumentParser) -> None:
    add_launch(command)
    command.add_argument("--output", metavar="DIR", help="write each array as the kernel left it: arg0.npy, ...")
    command.add_argument(
        "--timeline", metavar="FILE", help="draw warps, copies and mbarriers over time: .svg, or .html to be zoomed"
    )


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
    "sanitize": ("say what is wrong in a kernel, with line and remedy, without a GPU", add_sanitize),
    "demo": ("blur a picture through TMA, simulated where there is no GPU, and check it", _add_demo),
}
