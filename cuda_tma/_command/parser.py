"""The parser of the command line, which defines the commands and the arguments of each command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .. import __version__
from .exit_status import Misuse
from .launch_options import add_capability, add_launch, add_sanitize
from .options import OPTIONS, data_type, dtype, integer, sizes

__all__ = ["parser"]

_LAYOUT_FORMS = """\
names of layouts:
  wgmma.d:f32:64x32                           KIND:TYPE:ROWSxCOLUMNS
  tmem.d:f32:((128,128),1,1):((65536,1),0,0)  an accumulator of tcgen05.mma, as CuTe prints it
  tmem.a:bf16:((128,16),1,4):((64,1),0,16)    an A operand of tcgen05.mma in tensor memory
  tmem:bf16x2:(128,64):(65536,1)+32           a store of two bf16 in 32 bits, from column 32 on
  tmem:f32:(128,64):(65536,1)+32              the same as CuTe prints it, if READ has 16 bits
  tmem:f32:(128,?{div=16}):(65536,1)?=64      a ?, whose value follows ?= (several: ?=64,2)
Without arguments, the command lists all kinds.

exit status: 0 if the layouts are equal, 1 if they differ, 2 if the command line is wrong"""
_MAP = "the map: 256 hex digits, words as C prints them, a file that contains either, or - for standard input"

Run = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser that raises Misuse in place of printed errors, and that accepts no abbreviated option."""

    def __init__(self, **keywords: Any):
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{message} (see {self.prog} --help)")


_DESCRIPTION = (
    "Explain tensor maps (the 128-byte CUtensorMap) and CUDA errors; run kernels that use tensor maps without a GPU, "
    "and find their races and hangs."
)


def parser(runs: Mapping[str, Run]) -> argparse.ArgumentParser:
    """Return the parser; in its result, the attribute ``run`` is the function in `runs` for the command."""
    made = _Parser(prog="cuda-tma", description=_DESCRIPTION)
    made.add_argument("--version", action="version", version=f"cuda-tma {__version__}")
    commands = made.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, (text, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=runs[name])
        if name not in ("demo", "sanitize"):
            command.add_argument("--json", action="store_true", help="print the result as JSON, errors included")
        add_arguments(command)
    return made


def _add_check(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    add_capability(command, "9.0", "compute capability of the device")
    command.add_argument(
        "--warnings",
        action="store_true",
        help="also report parameters that the driver accepts and that are probably wrong",
    )


def _add_decode(command: argparse.ArgumentParser) -> None:
    _add_map(command)
    add_capability(command, "10.0", "compute capability of the device for a map made from --shape")


def _add_diff(command: argparse.ArgumentParser) -> None:
    command.add_argument("a", help=_MAP)
    command.add_argument("b", help="the other map, in any of the same forms")


def _add_suggest(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--shape", type=sizes, required=True, metavar="128x128", help="extents of the tile in elements, outermost first"
    )
    command.add_argument(
        "--dtype", type=dtype, default="float32", metavar="bfloat16", help="data type of the tile (default: float32)"
    )
    command.add_argument(
        "--data-type", type=data_type, metavar="TFLOAT32", help="data type by which TMA reads an element"
    )
    _add_access(command, "access of the threads to the tile in shared memory (default: ldmatrix)")
    command.add_argument(
        "--smem-limit-bytes",
        type=integer,
        metavar="65536",
        help="most shared memory of one load (default: the limit of a CTA)",
    )
    add_capability(command, "9.0", "compute capability of the device")


def _add_layouts(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "written",
        nargs="?",
        metavar="WRITTEN",
        help="layout that one instruction writes, such as wgmma.d:f32:64x32; without it, list the layouts",
    )
    command.add_argument(
        "read", nargs="?", metavar="READ", help="layout that another instruction reads, such as wgmma.a:e4m3"
    )
    command.add_argument(
        "--loaded",
        metavar="LAYOUT",
        help="layout in tensor memory that threads load before they write, such as tmem.d:f32:(128,128):(65536,1)",
    )
    command.add_argument(
        "--divide", metavar="TILER", help="divide the one layout of CuTe that is given by a tiler, such as '<3:3,8>'"
    )
    command.add_argument(
        "--values",
        metavar="LAYOUT",
        help="values of each thread, such as '(4,4):(4,1)'; the layout that is given contains the threads",
    )
    command.add_argument("--output", metavar="FILE", help="draw the layouts as SVG")
    command.formatter_class, command.epilog = argparse.RawDescriptionHelpFormatter, _LAYOUT_FORMS


def _add_plot(command: argparse.ArgumentParser) -> None:
    command.add_argument("picture", nargs="?", metavar="{tile,banks,box,tiles}", help="the picture to draw")
    command.add_argument("--html", metavar="FILE", help="write the interactive swizzle explorer with the given map")
    _add_map(command)
    add_capability(command, "10.0", "compute capability of the device")
    command.add_argument(
        "--at",
        type=sizes,
        metavar="0x0",
        help="first coordinates of the load, in tensor order; write negative ones as --at=-1x0",
    )
    _add_access(command, "for banks: access of the threads to the tile in shared memory (default: column)")
    command.add_argument(
        "--output", metavar="FILE", help="write the picture; the name's suffix selects PNG, SVG or PDF"
    )


def _add_access(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--access", choices=("row", "column", "ldmatrix"), help=text)


def _add_map(command: argparse.ArgumentParser) -> None:
    """Add the arguments for a map in its two forms: bytes, or a tensor with options."""
    command.add_argument("map", nargs="?", help=_MAP)
    group = command.add_argument_group("a map made from a tensor (all values in tensor order)")
    for option in OPTIONS:
        group.add_argument(option.flag, type=option.read, metavar=option.example, help=option.help)


def _add_nothing(command: argparse.ArgumentParser) -> None:
    pass


def _add_explain(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "text",
        nargs="*",
        help="an error (a number such as 715, or text of a log); a map's fields as CUTLASS, TensorRT-LLM or DeepGEMM "
        "print them, or its 128 bytes; mbarrier 0x... with its 64 bits; or a file that contains any of these (default: "
        "standard input)",
    )
    add_capability(command, "9.0", "compute capability of the device")


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--input", metavar="FILE", help="a picture, or a .npy file of shape (rows, columns[, channels])"
    )
    command.add_argument(
        "--output", default="demo.png", metavar="FILE", help="picture of input and result (default: demo.png)"
    )
    command.add_argument("--emulate", action="store_true", help="use the emulator even if there is a GPU")


def _add_run(command: argparse.ArgumentParser) -> None:
    add_launch(command)
    command.add_argument("--output", metavar="DIR", help="write each array after the launch: arg0.npy, ...")
    command.add_argument(
        "--timeline",
        metavar="FILE",
        help="draw warps, copies and mbarriers over time, as .svg or as .html that can be zoomed",
    )


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "check": ("report the parameters of a map that the driver would refuse, and the remedy", _add_check),
    "decode": ("print the fields of a map; with --shape, also its 128 bytes", _add_decode),
    "diff": ("compare two maps, and report the effect of each difference on a load", _add_diff),
    "explain": ("explain a CUDA error or a printed map, and report whether the map is at fault", _add_explain),
    "suggest": ("suggest a swizzle and the largest legal box for a tile, with reasons", _add_suggest),
    "plot": ("draw a tile in shared memory, its banks, its box in the tensor, or the tensor in tiles", _add_plot),
    "layouts": ("compare the places of each element in two layouts: fragments, tiles, tensor memory", _add_layouts),
    "info": ("print versions, driver and devices of this machine", _add_nothing),
    "run": ("run a kernel without a GPU, and report its errors", _add_run),
    "sanitize": (
        "find the races, hangs and other errors of a program's kernels without a GPU, with line and remedy",
        add_sanitize,
    ),
    "demo": ("blur a picture through TMA, on the simulator if there is no GPU, and check the result", _add_demo),
}
