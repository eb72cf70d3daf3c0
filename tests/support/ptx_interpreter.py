"""An interpreter of PTX for one thread, by which tests find the effects of a device header's function without a GPU.

In the interpreter, registers contain integers, or the text of unknown values. Kernel arguments are names. The result of
an instruction whose operands are names is the text of the instruction, so that `mapa.shared::cluster.u32(shared(full),
rank)` can be an operand of the next instruction. The interpreter executes arithmetic, moves and branches. Any other
instruction is an effect that the caller receives.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache

from tests.include._header import ptx

Value = int | str
# An effect is a tuple of an opcode and its operands.
Effect = tuple[str, tuple[Value, ...]]

# The table contains the arithmetic function of each opcode without its type.
ARITHMETIC: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    **dict.fromkeys(("mul.lo", "mul.wide"), operator.mul),
    **dict.fromkeys(("mad.lo", "mad.wide"), lambda a, b, c: a * b + c),
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": operator.neg,
    "popc": lambda value: value.bit_count(),
    "selp": lambda yes, no, which: yes if which else no,
    **{f"setp.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
# The instructions in this tuple have no effect, and their results depend only on the operands.
FUNCTIONS = ("mapa", "createpolicy", "cvt.rn")
# The instructions in this tuple copy a value from one state space or width to another.
COPIES = ("mov", "cvt", "ld.param")
# The instructions in this tuple have an effect, and also write a result into the first operand.
ANSWERED = (
    "mbarrier.try_wait", "elect.sync", "ld.acquire", "atom", "multimem.ld_reduce", "clusterlaunchcontrol.query_cancel",
)  # fmt: skip
MOST_STEPS = 10_000
# A kernel parameter with one of these C++ types may represent shared memory.
SHARED = ("void*", "Barrier*", "TensorMap*", "LaunchResponse*")


def execute(text: str, arguments: Iterable[Value]) -> Generator[Effect, Value | None, None]:
    """Yield the effects of the only kernel in a PTX text, in order. The caller passes the result of an effect by
    send()."""
    names = re.findall(r"\.param [^\n]*?(kernel_param_\d+)", text)
    registers: dict[str, Value] = dict(zip(names, arguments, strict=True)) | {"%lanemask_lt": 0}
    instructions, labels = _parse(text)
    at = 0
    for _ in range(MOST_STEPS):
        guard, opcode, operands = instructions[at]
        at += 1
        if guard and bool(_number(registers[guard.lstrip("!")])) == guard.startswith("!"):
            continue
        if opcode in ("ret", "exit"):
            return
        if opcode.startswith("bra"):
            at = labels[operands[0]]
        elif (pure := _pure(opcode)) is not None:
            registers[operands[0]] = pure(*(_value(operand, registers) for operand in operands[1:]))
        elif opcode.startswith(ANSWERED):
            answer = yield opcode, tuple(_value(operand, registers) for operand in operands[1:])
            for name in re.findall(r"[%\w]+", operands[0].removeprefix("_|")):
                registers[name] = 0 if answer is None else answer
        else:
            yield opcode, tuple(_value(operand, registers) for operand in operands)
    raise AssertionError(f"the kernel does not end within {MOST_STEPS} instructions")


@cache
def _parse(text: str) -> tuple[list[tuple[str, str, list[str]]], dict[str, int]]:
    """Return the guard, opcode and operands of each instruction, and the target of each label."""
    body = re.sub(r"//[^\n]*", "", text[text.index("\n{", text.index(".entry")) + 2 :])
    # The interpreter stores the content of local memory, but not of other memory.
    body = re.sub(r"\[(kernel_param_\d+)\]", r"\1", body)
    instructions: list[tuple[str, str, list[str]]] = []
    labels: dict[str, int] = {}
    for statement in body.split(";"):
        while found := re.match(r"\s*(?:(\$\w+):|\}|\{(?=\s*\.reg))", statement):
            if found[1]:
                labels[found[1]] = len(instructions)
            statement = statement[found.end() :]
        for guard, opcode, operands in re.findall(r"^\s*(?:@(!?[%\w]+)\s+)?([^.\s]\S*)\s*(.*)", statement, re.S):
            instructions.append((guard, opcode, re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,\s])+", operands)))
    return instructions, labels


def _pure(opcode: str) -> Callable[..., Value] | None:
    """Return the Python function that computes an opcode's result, or None if the instruction is an effect."""
    if opcode == "activemask.b32":
        # The interpreter runs one thread, which is the only active thread of its warp.
        return lambda: 1
    if opcode == "match.any.sync.b32":
        return lambda value, members: members
    if opcode.startswith("cvta.to.shared"):
        return lambda address: address if isinstance(address, int) else f"shared({address})"
    if opcode.startswith(FUNCTIONS):
        return lambda *operands: _text(opcode, operands)
    if opcode.startswith(COPIES):
        return lambda value: value
    known = ARITHMETIC.get(opcode.rpartition(".")[0])
    if known is None:
        return None
    return lambda *operands: (
        int(known(*operands)) if all(isinstance(operand, int) for operand in operands) else _text(opcode, operands)
    )


def _text(opcode: str, operands: Iterable[Value]) -> str:
    return f"{opcode}({', '.join(map(str, operands))})"


def _value(operand: str, registers: Mapping[str, Value]) -> Value:
    """Return an operand with values in place of its registers, and with the sum [address + offset] computed."""
    if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)", operand):
        return int(operand, 0)
    if operand in registers:
        return registers[operand]
    found = re.fullmatch(r"\[(%\w+)\+?(-?\d*)\]", operand)
    if found and isinstance(address := registers.get(found[1]), int):
        return f"[{address + int(found[2] or 0)}]"
    return re.sub(r"%?\b[A-Za-z_]\w*", lambda name: str(registers.get(name[0], name[0])), operand)


def _number(value: Value) -> int:
    assert isinstance(value, int), f"a branch depends on {value}"
    return value


def trace(text: str, arguments: Iterable[Value], answers: Iterable[Value] = ()) -> list[str]:
    """Return the effects of a kernel as lines of PTX. The results of waits and elections are `answers` in order, and
    then 1."""
    thread, rest = execute(text, arguments), iter(answers)
    lines: list[str] = []
    answer: Value | None = None
    while True:
        try:
            opcode, operands = thread.send(answer)
        except StopIteration:
            return lines
        lines.append(f"{opcode} {', '.join(map(str, operands))}".rstrip())
        answer = next(rest, 1) if opcode.startswith(ANSWERED) else None


def source_of(header: str, parameters: Mapping[str, str], statements: Iterable[str]) -> str:
    """Return a kernel with given parameters (name: type), in which an effect marks the beginning of each statement.

    The compiler assumes that no parameter points to shared memory.
    """
    hidden = "".join(f'asm volatile("" : "+l"({name})); ' for name, kind in parameters.items() if kind in SHARED)
    body = hidden + "\n    ".join(
        f'asm volatile("nanosleep.u32 {number};" ::: "memory"); {{ {statement} }}'
        for number, statement in enumerate(statements)
    )
    declared = ", ".join(f"{kind} {name}" for name, kind in parameters.items())
    return (
        f"#include <cuda_tma/{header}>\nusing namespace cuda_tma;\n"
        f'extern "C" __global__ void kernel({declared}) {{\n    {body}\n}}'
    )


def effects(
    header: str,
    parameters: Mapping[str, str],
    statements: Iterable[str],
    answers: Iterable[Value] = (),
    target: str = "compute_90a",
) -> dict[str, str]:
    """Return the effects of each C++ statement as lines of PTX with the names of the kernel's parameters."""
    statements = list(statements)
    lines = trace(ptx(source_of(header, parameters, statements), target), parameters, answers)
    before, *blocks = re.split(r"nanosleep.u32 \d+\n?", "\n".join(lines) + "\n")
    assert before.strip() == ""
    return {
        statement: "; ".join(block.strip().splitlines()) for statement, block in zip(statements, blocks, strict=True)
    }
