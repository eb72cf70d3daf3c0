"""Random PTX, which is real texts with mutations, or texts from a grammar with numbers at their limits."""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
NUMBERS = (
    *("0", "1", "-1", "2", "3", "7", "8", "16", "31", "32", "33", "64", "127", "128", "255", "256", "1023", "1024"),
    *("1025", "4096", "65535", "65536", "1000000", "2147483647", "2147483648", "4294967295", "4294967296"),
    *("1099511627776", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    *("-9223372036854775808", "0xffffffff", "0xffffffffffffffff"),
)
_ODD_NUMBERS = (
    *("18446744073709551616", "9" * 30, "9" * 5000, "0x1" + "0" * 40, "0f3F800000", "0f7FC00000"),
    *("0d7FF0000000000000", "1.5", "1e400", "0b101", "017", "09"),
)
FILE_NAMES = (
    *("a.cu", "src/a.cu", "/etc/passwd", "/etc/shadow", "/dev/zero", "/dev/stdin", "/proc/self/environ", "pipe"),
    *("/proc/self/mem", "/proc/self/cwd/../secret/a.cu", "/proc/self/root/etc/passwd", "../secret/a.cu", "link.cu"),
    *("zero.cu", ".", "/", "", "a/" * 5000, "\x1b[31m", "\\000", "\\377\\376", "/dev/fd/0", "linked/a.cu", "folder"),
)
_TYPES = (
    *(
        "b8",
        "b16",
        "b32",
        "b64",
        "u8",
        "u16",
        "u32",
        "u64",
        "s8",
        "s16",
        "s32",
        "s64",
        "f16",
        "f16x2",
        "bf16",
        "bf16x2",
    ),
    *("tf32", "f32", "f64", "b128", "pred", "b4", "foo"),
)
_SPACES = [".global", ".shared", ".local", ".param", ".const", ".shared::cta", ".shared::cluster", ".reg", ".generic"]
# The file contains valid PTX statements. In a statement, R, D, F, H and P are registers, and N is a number. In a
# statement, G, S and L are addresses of global, shared and local memory, and B is the address of an mbarrier.
_STATEMENTS = (Path(__file__).parent / "hostile_statements.txt").read_text().splitlines()
_CHARACTERS = "\0\x1b\n\t ;,{}()[]<>@!%$._:|+-~*/\"'\\#\udcff\u202e\xe9" + "0123456789abcdefxU"


@lru_cache(maxsize=1)
def _texts() -> tuple[str, ...]:
    """Return the texts of real PTX, which are complete texts and separate kernels."""
    triton = gzip.decompress((ROOT / "benchmarks" / "triton" / "gemm.ptx.gz").read_bytes()).decode()
    nvcc = (ROOT / "tests" / "data" / "line_info.ptx").read_text()
    cutlass = gzip.decompress((ROOT / "tests" / "data" / "cutlass_gemm.ptx.gz").read_bytes()).decode()
    return *_kernels(nvcc), nvcc, *_kernels(triton), *(_kernels(cutlass)[:2])


def _kernels(text: str) -> list[str]:
    """Return each entry of a text, with its body limited to the part that mutations change."""
    head = text[: text.find(".entry")]
    begun = head.rfind("\n") + 1
    parts = re.split(r"(?m)^(?=\.visible \.entry|\.entry)", text[begun:])
    return [text[:begun] + part for part in parts if ".entry" in part]


def number(random: Random) -> str:
    """Draw a number at a limit, or any other number."""
    if random.random() < 0.05:
        return random.choice(_ODD_NUMBERS)
    return (
        random.choice(NUMBERS) if random.random() < 0.7 else str(random.getrandbits(random.choice((4, 8, 16, 40, 64))))
    )


# ---- mutations ----


def mutated(random: Random) -> tuple[str, str]:
    """Make a real text with one to six changes. Return the changed text, and the name of the kernel in the text."""
    text = random.choice(_texts())
    found = re.findall(r"\.entry\s+([\w$]+)", text)
    # Most mutants contain only a part of the kernel's body, which limits the time of a run.
    if len(text) > 20_000 and random.random() < 0.9:
        text = _shortened(text, random)
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        text = random.choice(_MUTATIONS)(text, random)
    return text, random.choice(found) if found else "f"


def _shortened(text: str, random: Random) -> str:
    lines = text.split("\n")
    begin = random.randrange(len(lines))
    keep = {i for i, line in enumerate(lines) if re.match(r"\s*\.(?!loc)|\$|[{}()]|\s*ret", line)}
    return "\n".join(line for i, line in enumerate(lines) if i in keep or begin <= i < begin + 150)


def _other_number(text: str, random: Random) -> str:
    found = [*re.finditer(r"(?<![\w%$.])-?\d+", text)]
    if not found:
        return text
    one = random.choice(found)
    return text[: one.start()] + number(random) + text[one.end() :]


def _other_name(text: str, random: Random) -> str:
    found = [*re.finditer(r"[%$\w.:]+", text)]
    if len(found) < 2:
        return text
    one, other = random.choice(found), random.choice(found)
    return text[: one.start()] + other[0] + text[one.end() :]


def _other_modifier(text: str, random: Random) -> str:
    found = [*re.finditer(r"\.\w+", text)]
    if not found:
        return text
    one = random.choice(found)
    other = random.choice([f".{random.choice(_TYPES)}", random.choice(_SPACES), random.choice(found)[0], ""])
    return text[: one.start()] + other + text[one.end() :]


def _without_a_line(text: str, random: Random) -> str:
    lines = text.split("\n")
    del lines[random.randrange(len(lines))]
    return "\n".join(lines)


def _repeated(text: str, random: Random) -> str:
    lines = text.split("\n")
    at, count = random.randrange(len(lines)), random.choice((1, 2, 10, 300))
    return "\n".join(lines[:at] + lines[at : at + random.choice((1, 1, 5))] * count + lines[at:])


def _exchanged(text: str, random: Random) -> str:
    lines = text.split("\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _characters(text: str, random: Random) -> str:
    at, width = random.randrange(len(text) + 1), random.choice((0, 0, 1, 4))
    return text[:at] + "".join(random.choices(_CHARACTERS, k=random.choice((1, 1, 3)))) + text[at + width :]


def _cut(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)]


def _named_file(text: str, random: Random) -> str:
    return re.sub(r'(\.file\s+\d+) "[^"]*"', lambda one: f'{one[1]} "{random.choice(FILE_NAMES)}"', text)


def _statement_in(text: str, random: Random) -> str:
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines) + 1), statement(random, random.random() < 0.5))
    return "\n".join(lines)


def _nested(text: str, random: Random) -> str:
    opening, closing = random.choice(("{}", "()", "[]", "-\n", "/*", "<>"))
    at, depth = random.randrange(len(text) + 1), random.choice((1, 99, 100, 101, 3000))
    return text[:at] + opening * depth + closing * depth + text[at:]


_MUTATIONS = (
    *(_other_number, _other_number, _other_number, _other_name, _other_name, _other_modifier, _other_modifier),
    *(_without_a_line, _repeated, _exchanged, _characters, _cut, _named_file, _statement_in, _statement_in, _nested),
)

# ---- the grammar ----


def by_grammar(random: Random) -> tuple[str, str]:
    """Make a text with one kernel, f, and perhaps functions that the kernel calls. Most of the text is nearly right."""
    odd = random.choice(("none", "none", "none", "head", "declared", "attributes", "parameters", "body"))
    parts = [random.choice(("", ".version 99.9\n", HEAD * 3)) if odd == "head" else HEAD]
    parts += [_file(random) for _ in range(random.choice((0, 0, 1, 2)))]
    parts.append(_USUAL)
    if odd == "declared":
        parts += [_declared(random, random.choice((".global", ".const", ".shared", ".extern .shared", ".tex")))]
    parts += [f".func g{i}()\n{{\n{_body(random, 4)}}}\n" for i in range(2)]
    parameters = _parameters(random) if odd == "parameters" else random.choice(("", ".param .u64 p0", ".param .u64 p0"))
    attributes = _attributes(random) if odd == "attributes" else ""
    parts.append(f".visible .entry f({parameters}) {attributes}\n{{\n{_body(random, 12, odd == 'body')}}}\n")
    text = "".join(parts)
    return (random.choice(_MUTATIONS)(text, random) if random.random() < 0.15 else text), "f"


def _file(random: Random) -> str:
    return f'.file {random.choice(("1", "2", number(random)))} "{random.choice(FILE_NAMES)}"\n'


_USUAL = """.global .align 128 .b8 x0[4096];
.shared .align 128 .b8 x1[4096];
.const .align 8 .b32 x2[4] = {1, 2, 3, 4};
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc (.param .b64 a);
.extern .func free (.param .b64 a);
.func (.param .b32 r) g2(.param .b32 a)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [a]; st.param.b32 [r], %r1; ret; }
"""


def _declared(random: Random, space: str) -> str:
    align = f".align {random.choice(('8', '16', '128', '1024', number(random)))} " if random.random() < 0.5 else ""
    extents = "".join(f"[{_extent(random)}]" for _ in range(random.choice((0, 1, 1, 1, 2))))
    given = f" = {_initial(random, 3)}" if random.random() < 0.3 else ""
    return f"{space} {align}.{random.choice(_TYPES)} y{random.randrange(4)}{extents}{given};\n"


def _extent(random: Random) -> str:
    return random.choice(("4", "64", "1024", "8", "", number(random), f"{number(random)}*{number(random)}"))


def _initial(random: Random, depth: int) -> str:
    if depth and random.random() < 0.5:
        return f"{{{', '.join(_initial(random, depth - 1) for _ in range(random.randrange(4)))}}}"
    return random.choice(
        (number(random), "x0", "generic(x1)+4", f"0xff({random.choice(('x2', 'f', 'q'))})", "(1<<63)*9")
    )


def _parameters(random: Random) -> str:
    return ", ".join(
        f".param .{random.choice(('u64', 'u32', 'b8', 'f32', random.choice(_TYPES)))} p{i}"
        + (f"[{_extent(random)}]" if random.random() < 0.1 else "")
        for i in range(random.choice((0, 1, 2)))
    )


def _attributes(random: Random) -> str:
    name = random.choice(("maxntid", "reqntid", "reqnctapercluster", "explicitcluster", "minnctapersm", "maxnreg"))
    return f".{name} {', '.join(number(random) for _ in range(random.randrange(4)))}"


def _body(random: Random, most: int, odd: bool = False) -> str:
    lines = [
        ".reg .pred %p<4>; .reg .b16 %h<5>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<5>;",
        ".local .align 16 .b8 x3[256]; .shared .align 8 .b64 bar;",
        "mov.u32 %r1, %tid.x; mov.u64 %rd1, x0; cvta.global.u64 %rd2, %rd1; mov.u32 %r2, x1; setp.lt.u32 %p1, %r1, 7;",
    ]
    if odd:
        lines.append(f".reg .{random.choice(_TYPES)} %q<{number(random)}>;")
        lines.append(_declared(random, random.choice((".shared", ".local", ".param"))))
    for _ in range(random.randrange(most)):
        lines.append(statement(random, odd))
    lines.insert(random.randrange(3, len(lines) + 1), "L0:")
    lines.append("L1:")
    if random.random() < 0.1:
        lines.append("T0: .branchtargets L0, L1;")
    return "\n".join([*lines, "ret;\n"])


def statement(random: Random, odd: bool = False) -> str:
    """Draw an instruction (sometimes a wrong one), a label or a block."""
    if random.random() < 0.08:
        at = f"{random.choice((1, 1, 2))} {random.choice((1, 2, number(random)))} 1"
        return f".loc {at}" + random.choice(
            ("", f", function_name L+{number(random)}, inlined_at 1 2 3" if odd else "")
        )
    if random.random() < 0.04:
        return f"{{ .reg .b32 %r1; mov.u32 %r1, 0; {statement(random, odd)} }}"
    text = random.choice(_STATEMENTS)
    while text in ("trap", "exit", "ret") and random.random() < 0.7:
        text = random.choice(_STATEMENTS)
    opcode, _, operands = text.partition(" ")
    filled = re.sub(r"(?<![\w%.])[RDFHPNGSLB](?![\w.])", lambda one: _filled(one[0], random), operands)
    guard = random.choice(("", "", "", "@%p1 ", "@!%p2 ")) if opcode != "{" else ""
    found = f"{guard}{opcode} {filled}{';' if opcode != '{' else ''}"
    return random.choice((_other_number, _other_name, _other_modifier, _characters))(found, random) if odd else found


def _filled(kind: str, random: Random) -> str:
    if kind in "RDFHP":
        name = {"R": "%r", "D": "%rd", "F": "%f", "H": "%h", "P": "%p"}[kind]
        return name + str(random.randrange(1, 4))
    if kind == "N":
        return random.choice(
            ("0", "1", "2", "4", "8", "16", "32", "128", number(random) if random.random() < 0.3 else "64")
        )
    if kind == "B":
        return random.choice(("[bar]", "[bar]", "[bar]", "[x1+8]", "[%r2]", "[%r3]"))
    base = {"G": ("x0", "x0", "%rd2", "%rd3"), "S": ("x1", "x1", "%r2", "%r3"), "L": ("x3", "x3", "%r3")}[kind]
    return f"[{random.choice(base)}{random.choice(('', '', '', '+16', '+128', '-8', '+4096', '+3'))}]"
