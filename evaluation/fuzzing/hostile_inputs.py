"""Random command lines of ``cuda-tma`` and their files.

A seed and a number determine each input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

from cuda_tma._command.options import OPTIONS
from evaluation.fuzzing.hostile_ptx import FILE_NAMES, NUMBERS, by_grammar, mutated, number
from evaluation.fuzzing.hostile_recordings import recording

ROOT = Path(__file__).parents[2]
POSTED = ROOT / "tests" / "data" / "posted"
_TIME_LIMIT_SECONDS = "2"


@dataclass(frozen=True)
class Input:
    """An input, which is one command line with its files.

    Attributes
    ----------
    family : str
        The name of a function in :data:`FAMILIES`.
    arguments : tuple of str
    files : dict of str to bytes
        The content of each file, by its name below the working directory.
    standard_input : bytes
    """

    family: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    standard_input: bytes = b""

    def as_json(self) -> str:
        """Return a line of JSON from which the input can be made again."""
        files = {name: data.decode("latin-1") for name, data in self.files.items()}
        return json.dumps([self.family, self.arguments, files, self.standard_input.decode("latin-1")])


# ---- texts that users paste ----


@lru_cache(maxsize=1)
def _posted() -> tuple[str, ...]:
    dump = "\n".join(f"0x{64 * i:x} <map+{64 * i}>: " + " ".join(["0x00000000deadbeef"] * 8) for i in range(2))
    texts = [path.read_text("utf-8", "replace") for path in sorted(POSTED.glob("*.txt"))]
    return *texts, dump, "mbarrier 0x0000000000000001", "error 715", "CUDA_ERROR_INVALID_VALUE", "ff" * 128, "[1, 2, 3]"


_PARTS = (
    *("\n", " ", "\t", "0x", "0x1,", "[", "]", "(", ")", "{", "}", "<", ">", ":", ",", "b'\\x00'", "error ", "CUDA "),
    *(
        "globalDim",
        "boxDim (1,2,3)",
        "mbarrier ",
        "swizzle",
        "\0",
        "\x1b[2J",
        "\udcff",
        "é",
        "0",
        "f",
        "-",
        "nan",
        "1e999",
    ),
)


def _pasted(random: Random) -> str:
    text = random.choice(_posted()) if random.random() < 0.7 else ""
    for _ in range(random.choice((0, 1, 2, 4))):
        at, width = random.randrange(len(text) + 1), random.choice((0, 0, 1, 5, 40))
        part = random.choice((random.choice(_PARTS), number(random)))
        text = text[:at] + part * random.choice((1, 1, 1, 3, 40, 3000)) + text[at + width :]
    return text[: 1 << 17]


def explain(random: Random) -> Input:
    """Draw a text as an argument, as a file, or on standard input."""
    text, way = _pasted(random), random.randrange(3)
    data = text.encode("utf-8", "surrogateescape")
    if way == 0:
        return Input("explain", ("explain", *_json(random), text.replace("\0", " ")))
    if way == 1:
        return Input("explain", ("explain", *_json(random), "given.txt"), {"given.txt": data})
    return Input("explain", ("explain", *_json(random)), standard_input=data)


def dumps(random: Random) -> Input:
    """Draw the bytes of maps, for the commands that read them."""
    made_of = random.choice((bytes(128), random.randbytes(128), random.randbytes(random.choice((0, 127, 129, 4000)))))
    forms: tuple[Callable[[], bytes], ...] = (
        lambda: made_of,
        lambda: made_of.hex().encode(),
        lambda: made_of.hex(" ", random.choice((1, 2, 4, 8))).encode(),
        lambda: _pasted(random).encode("utf-8", "surrogateescape"),
    )
    files = {name: random.choice(forms)() for name in ("a.bin", "b.bin")}
    command = random.choice(("decode", "check", "diff"))
    names = ("a.bin", random.choice(("b.bin", "-", *FILE_NAMES)))
    return Input("dumps", (command, *_json(random), *names[: 1 + (command == "diff")]), files, files["b.bin"])


def _json(random: Random) -> tuple[str, ...]:
    return ("--json",) if random.random() < 0.3 else ()


# ---- arguments ----

_LAYOUTS = (
    *("wgmma.d:f32:64x32", "wgmma.a:e4m3", "mma.d:f32", "ldmatrix.x4:b16", "tile:bf16:8x64:128B", "tmem.d:f32:128x128"),
    *("cute:((4,8),(2,2)):((32,1),(16,8))@16x8", "cute:(999,9999):(1,1)@16x8", "tcgen05.ld.32x32b:f32:x8", "atom:x.a"),
)


def layouts(random: Random) -> Input:
    """Draw two layouts, or texts that are nearly layouts."""
    texts = tuple(_changed(random, random.choice(_LAYOUTS)) for _ in range(random.choice((1, 2, 2, 2, 3))))
    return Input("layouts", ("layouts", *_json(random), *texts))


def _changed(random: Random, text: str) -> str:
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        at, width = random.randrange(len(text) + 1), random.choice((0, 1, 2))
        part = random.choice((*"():,x@.[]-* \x1b", number(random), "(" * 3000, "1," * 3000, "bf16", "64B"))
        text = text[:at] + part + text[at + width :]
    return text


_FLAGS = [option.flag for option in OPTIONS]
_FLAGS += [
    "--compute-capability",
    "--access",
    "--at",
    "--smem-limit-bytes",
    "--json",
    "--warnings",
    "--help",
    "--bogus",
]
_VALUES = [
    "8x64x64",
    "1x8x64",
    "bfloat16",
    "float32",
    "tf32",
    "same",
    "0:1",
    "W",
    "64",
    "128B",
    "NONE",
    "NAN",
    "sm_100a",
    "9.0",
    "row",
    "0x0",
    "3",
    "32x32",
    "-1",
    "0x1000",
]


def maps(random: Random) -> Input:
    """Draw the options of a map, most of which have extreme values."""
    command = random.choice(("check", "decode", "suggest", "check", "info", "bogus"))
    given = ["--shape=64x64", "--box=8x32"] if random.random() < 0.6 else []
    given += [f"{random.choice(_FLAGS)}={_value(random)}" for _ in range(random.choice((0, 1, 2, 3)))]
    return Input("maps", (command, *_json(random), *given))


def _value(random: Random) -> str:
    if random.random() < 0.6:
        return random.choice(_VALUES)
    sizes = random.choice("x,:").join(number(random) for _ in range(random.choice((1, 2, 3, 6))))
    return random.choice((sizes, random.choice(NUMBERS), "\x1b[31m", "é" * 2000, "", "x" * 5000))


# ---- kernels ----


def _launch(random: Random, text: str, name: str, family: str) -> Input:
    command = random.choice(("run", "sanitize", "sanitize"))
    file = random.choice(("k.ptx", "k.ptx", "ptx/k.ptx"))
    arguments = [command, file, "--kernel", name if random.random() < 0.97 else _odd(random)]
    arguments += ["--grid", _extents(random, ("1", "2", "4x1")), "--block", _extents(random, ("1", "32", "64", "32x2"))]
    is_odd = random.random() < 0.1
    for declared in _declared(text, name) if random.random() < 0.95 else [""] * random.randrange(4):
        arguments += ["--arg", _argument(random, declared, is_odd)]
    arguments += ["--time-limit", _TIME_LIMIT_SECONDS]
    if random.random() < 0.3:
        arguments += random.choice(_launch_options(random))
    if random.random() < 0.9:
        arguments += ["--max-steps", "3000"]
    if command == "sanitize":
        arguments += ["--schedules", random.choice(("1", "1", "2", "4")), *_of_sanitize(random)]
    files = {file: text.encode("utf-8", "surrogateescape"), "s.txt": _suppressions(random), "a.npy": _npy(random)}
    return Input(family, tuple(each.replace("\0", "") for each in arguments), files)


def _launch_options(random: Random) -> tuple[list[str], ...]:
    return (
        ["--cluster", _extents(random, ("1", "2"))],
        ["--shmem-size", random.choice(("1024", "65536", number(random)))],
        ["--order", random.choice(("late", "random", "bogus"))],
        ["--seed", number(random)],
        ["--json"],
        ["--compute-capability", random.choice(("9.0", "10.0", "12.0", "8.0", number(random)))],
        ["-D", _odd(random)],
        ["-I", random.choice(FILE_NAMES).replace("\0", "")],
        ["--time-limit", random.choice(("0", "-1", "nan", "inf", "1e-9", "1e999", "x", "0.05"))],
    )


def _of_sanitize(random: Random) -> list[str]:
    places = ("race:k.cu:1:why", "race:*:why", "*:*:*", ":::", "race:" + " " * 3000, "bogus:a:b", "fault:PTX line ?:x")
    return random.choice(
        (
            *([], [], [], [], [], ["--strict"], ["--suppress", _changed(random, random.choice(places))]),
            ["--suppressions", random.choice(("s.txt", "s.txt", "zero.txt", "pipe", "folder", "absent"))],
            [
                "--sarif",
                random.choice(("out.sarif", "out.sarif", "k.ptx", "s.txt", "folder", "pipe", "absent/x", "/dev/full")),
            ],
        )
    )


def _extents(random: Random, usual: tuple[str, ...]) -> str:
    if random.random() < 0.95:
        return random.choice(usual)
    return "x".join(number(random) for _ in range(random.choice((1, 2, 3, 4))))


def _odd(random: Random) -> str:
    return random.choice(
        ("", "g", "-x", "\x1b[31m", "a" * 5000, "_Z1aI" + "J" * 2000, "é", "\udcff", "A=1", number(random))
    )


def _declared(text: str, name: str) -> list[str]:
    """Return the types of the kernel's parameters if the text of the kernel is PTX."""
    begin = text.find(name, text.find(".entry"))
    found = re.findall(r"\.param ([^,()]*)", text[begin : text.find(")", begin)])
    return found[:40]


def _argument(random: Random, declared: str, is_odd: bool) -> str:
    if "[128]" in declared and not is_odd:
        return "random:float32[64x64]@8x32,swizzle=128B"
    if re.search(r"\.[usb](32|16|8)\b", declared) and not is_odd:
        return random.choice(("0", "1", "7", "64"))
    if re.search(r"\.f(32|64)\b", declared) and not is_odd:
        return "1.5"
    dtype = random.choice(
        ("float32", "int32", "bfloat16", "uint8", "float64", "object", "U9", "foo", "int4", "complex64")
    )
    array = (
        f"{random.choice(('', '', 'random:'))}{dtype}[{random.choice(('64', '8x32', '0', number(random), '4x4x4'))}]"
    )
    options = f"{array}@{random.choice(('8x32', '4', number(random)))},swizzle={random.choice(('64B', '128B', 'x'))}"
    usual = ("int32[64]", "float32[4096]", "uint8[512]", "0")
    odd = (array, options, "hex:00", "hex:" + "0" * 4000, "a.npy", "zero.npy", "pipe.npy", number(random), _odd(random))
    return random.choice(odd if is_odd else usual)


def _suppressions(random: Random) -> bytes:
    lines = [
        "# a comment",
        "race:a.cu:1:why",
        "race:" + " " * random.choice((1, 3000)) + ":x",
        "bogus",
        "\udcff",
        "\0" * 20,
    ]
    return "\n".join(random.choices(lines, k=random.randrange(6))).encode("utf-8", "surrogateescape")


def _npy(random: Random) -> bytes:
    descr = random.choice(("'<f4'", "'|O'", "'<U9'", "'<M8[s]'", "[('a', '<i4')]", "(" * 2000, "'<f4'", "'|V2'"))
    shape = random.choice(("(16,)", "(4, 4)", f"({number(random)},)", "()", "(-1,)", "(" * 3000, "(16,)"))
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head = b"\x93NUMPY\x01\x00" + (len(header) % 65536).to_bytes(2, "little") + header
    return (head + bytes(64))[: random.choice((100_000, 100_000, len(head), 9))]


def real_kernels(random: Random) -> Input:
    """Draw PTX of a compiler with mutations."""
    return _launch(random, *mutated(random), "real kernels")


def grammar_kernels(random: Random) -> Input:
    """Draw PTX from the grammar."""
    return _launch(random, *by_grammar(random), "grammar kernels")


def recordings(random: Random) -> Input:
    """Draw recorded launches, which may be damaged or unusual."""
    more = random.choice(
        ([], [], ["--json"], ["--strict"], ["--sarif", "out.sarif"], ["--kernel", "("], ["--launch-skip", "9"])
    )
    arguments = ("sanitize", "launches", "--time-limit", _TIME_LIMIT_SECONDS, "--max-steps", "3000", *more)
    return Input("recordings", arguments, {"launches": recording(random)})


# FAMILIES maps a generator of inputs to its share of the inputs in percent.
FAMILIES: dict[Callable[[Random], Input], int] = {
    explain: 17, dumps: 12, layouts: 8, maps: 10, real_kernels: 20, grammar_kernels: 29, recordings: 4,
}  # fmt: skip


def made(seed: int, index: int) -> Input:
    """Make the input of a seed and a number."""
    random = Random(f"{seed}:{index}")
    (family,) = random.choices([*FAMILIES], [*FAMILIES.values()])
    return family(random)
