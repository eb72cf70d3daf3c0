"""The PTX of a tiny program, with a warp or a CTA for each thread. The first lane executes the accesses."""

from __future__ import annotations

from collections.abc import Iterator

from evaluation.fuzzing.race_programs import FLAGS, MBARRIERS, WORDS, Operation, Program

__all__ = ["NAME", "ptx_of"]

NAME = "tiny"
_FLAG_BYTES = 16  # The words take 16 bytes, and the flags follow them.
_HEAD = """.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 words[32];
.shared .align 8 .b64 mbarriers[2];
.visible .entry tiny(.param .u64 memory, .param .u64 out)
{
    .reg .pred %first, %other, %done;
    .reg .b32 %lane, %thread, %value;
    .reg .b64 %memory, %out, %state;
    ld.param.u64 %memory, [memory];
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
"""


def ptx_of(program: Program) -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the PTX of a program, and the operation (thread, position) of each line with an access."""
    lines = [*_HEAD.splitlines(), *_beginning(program)]
    places: dict[int, tuple[int, int]] = {}
    for thread, operations in enumerate(program.threads):
        lines.append(f"THREAD{thread}:")
        for at, operation in enumerate(operations):
            written = [*_written(operation, program.space, thread, at)]
            places |= {len(lines) + offset + 1: (thread, at) for offset in range(len(written))}
            lines += written
        lines.append("    ret;")
    return "\n".join((*lines, "}", "")), places


def _beginning(program: Program) -> Iterator[str]:
    if program.space == "global":
        yield "    mov.u32 %thread, %ctaid.x;"
    else:
        yield from ("    setp.ne.u32 %other, %lane, 0;", "    @%other bra READY;")
        yield from (f"    st.shared.u32 [words+{4 * word}], 0;" for word in range(_FLAG_BYTES // 4 + FLAGS))
        for number in range(MBARRIERS):
            yield f"    mbarrier.init.shared.b64 [mbarriers+{8 * number}], {program.arrivals(number)};"
        yield from ("READY:", "    bar.sync 0;", "    shr.u32 %thread, %lane, 5;", "    and.b32 %lane, %lane, 31;")
    yield "    setp.eq.u32 %first, %lane, 0;"
    for thread in range(1, len(program.threads)):
        yield from (f"    setp.eq.u32 %other, %thread, {thread};", f"    @%other bra THREAD{thread};")


def _written(operation: Operation, space: str, thread: int, at: int) -> Iterator[str]:
    verb, number = operation
    base, scope = ("%memory", "gpu") if space == "global" else ("words", "cta")
    word, flag = f"[{base}+{4 * number}]", f"[{base}+{_FLAG_BYTES + 4 * number}]"
    mbarrier, label = f"[mbarriers+{8 * number}]", f"AGAIN{thread}_{at}"
    if verb == "read":
        yield f"    @%first ld.{space}.u32 %value, {word};"
        yield f"    @%first st.global.u32 [%out+{4 * (16 * thread + at)}], %value;"
    elif verb == "write":
        yield f"    @%first st.{space}.u32 {word}, {16 * thread + at + 1};"
    elif verb == "add":
        yield f"    @%first red.relaxed.{scope}.{space}.add.u32 {word}, {16 * thread + at + 1};"
    elif verb == "barrier":
        yield "    bar.sync 0;"
    elif verb == "arrive":
        yield f"    @%first mbarrier.arrive.shared.b64 %state, {mbarrier};"
    elif verb == "release":
        yield f"    @%first st.release.{scope}.{space}.u32 {flag}, 1;"
    else:
        yield f"{label}:"
        if verb == "wait":
            yield f"    mbarrier.try_wait.parity.shared.b64 %done, {mbarrier}, 0;"
        else:
            yield f"    ld.acquire.{scope}.{space}.u32 %value, {flag};"
            yield "    setp.ne.u32 %done, %value, 0;"
        yield f"    @!%done bra {label};"


assert WORDS * 4 <= _FLAG_BYTES
