"""Operations on an mbarrier, step by step, with their results by the PTX ISA: phase, counts of arrivals, and tx-count.

A case is a name and a list of operations. Each operation is a name in ``OPERATIONS`` and a number. The function
``cases()`` returns cases whose outcome PTX defines, and ``undefined_cases()`` returns the other cases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from cuda_tma.barrier import Barrier

Operation = tuple[str, int]
Case = tuple[str, list[Operation]]
# MOST is the largest count of arrivals, and the largest absolute value of the tx-count (PTX ISA, "Size and alignment",
# "Range of the tx-count").
MOST = (1 << 20) - 1

# The table maps an operation to PTX with six operands. Operand %0 is the result of 64 bits, %1 is the address of the
# mbarrier, and %2 is a number. Operand %3 is an address in shared memory, and %4 is an address in global memory.
# Operand %5 is the address of 16 bytes whose second half is the mbarrier.
_ARRIVE = "mbarrier.arrive{0}.shared::cta.b64 %0, [%1], %2;"
_DROP = "mbarrier.arrive_drop{0}.shared::cta.b64 %0, [%1], %2;"
_TX = "mbarrier.{0}.relaxed.{1}.shared::{1}.b64 [%1], %2;"
_PARITY = (
    "{{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], {0};"
    " .reg .b32 x; selp.u32 x, 1, 0, p; cvt.u64.u32 %0, x; }}"
)
OPERATIONS = {
    "init": "mbarrier.init.shared::cta.b64 [%1], %2;",
    "arrive": _ARRIVE.format(""),
    "arrive.noComplete": _ARRIVE.format(".noComplete"),
    "arrive.expect_tx": _ARRIVE.format(".expect_tx"),
    "arrive_drop": _DROP.format(""),
    "arrive_drop.noComplete": _DROP.format(".noComplete"),
    "arrive_drop.expect_tx": _DROP.format(".expect_tx"),
    "expect_tx": _TX.format("expect_tx", "cta"),
    "complete_tx": _TX.format("complete_tx", "cta"),
    "test_wait.parity 0": _PARITY.format(0),
    "test_wait.parity 1": _PARITY.format(1),
    "cp.async.mbarrier.arrive": "cp.async.mbarrier.arrive.shared::cta.b64 [%1];",
    "cp.async.mbarrier.arrive.noinc": "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%1];",
    "inval": "mbarrier.inval.shared::cta.b64 [%1];",
    "store": "{ .reg .b64 x; cvt.u64.u32 x, %2; st.shared.b64 [%1], x; }",
    "look": "ld.volatile.shared.b64 %0, [%1];",
    "atom.add 0": "atom.shared.add.u64 %0, [%1], 0;",
    "membar": "membar.sys;",
    "fence.proxy.async": "fence.proxy.async;",
    "nanosleep": "nanosleep.u32 %2;",
    "bulk store": "cp.async.bulk.global.shared::cta.bulk_group [%4], [%5], 16; cp.async.bulk.commit_group;"
    " cp.async.bulk.wait_group 0; ld.volatile.global.b64 %0, [%4 + 8];",
    "cp.async.bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%3], [%4], %2, [%1];",
    # The second CTA of the cluster executes the operation "remote look".
    "remote look": "ld.volatile.shared::cluster.b64 %0, [%1];",
    "remote arrive": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%1], %2;",
    "remote arrive.expect_tx": "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%1], %2;",
    "remote arrive_drop": "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%1], %2;",
    "remote expect_tx": _TX.format("expect_tx", "cluster"),
    "remote complete_tx": _TX.format("complete_tx", "cluster"),
}
REMOTE = "remote "


def after(barrier: Barrier, operation: Operation) -> Barrier:
    """Return the barrier after an operation with a defined outcome (PTX ISA, "Operations on mbarrier objects")."""
    name, number = operation[0].removeprefix(REMOTE), operation[1]
    if name == "init":
        return Barrier(0, number, number, 0)
    if name.endswith("expect_tx"):
        barrier = replace(barrier, tx_count=barrier.tx_count + number)
    if name in ("complete_tx", "cp.async.bulk"):
        barrier = replace(barrier, tx_count=barrier.tx_count - number)
    if name.startswith("arrive") or name.endswith(".noinc"):
        count = 1 if name.endswith(("expect_tx", ".noinc")) else number
        dropped = count if name.startswith("arrive_drop") else 0
        pending, expected = barrier.pending_count - count, barrier.expected_count - dropped
        barrier = replace(barrier, pending_count=pending, expected_count=expected)
    if barrier.pending_count or barrier.tx_count:
        return barrier
    return replace(barrier, phase=1 - barrier.phase, pending_count=barrier.expected_count)


def states(operations: list[Operation]) -> Iterator[Barrier]:
    """Yield the barrier after each operation. The first operation must initialize the barrier."""
    barrier = Barrier(0, 0, 0, 0)
    for operation in operations:
        barrier = after(barrier, operation)
        yield barrier


def cases() -> Iterator[Case]:
    powers = sorted({n for bit in range(21) for n in ((1 << bit) - 1, 1 << bit, (1 << bit) + 1) if 1 <= n <= MOST})
    for n in powers:
        yield f"count {n}", [("init", n), ("arrive", 1), *[("arrive", n - 1)] * (n > 1), ("arrive", n)]
    yield "one by one", [("init", 5), *_tested("arrive", 1, 17)]
    yield "alone", [("init", 1), *_tested("arrive", 1, 6)]
    steps = [1 << bit for bit in range(20)]
    there, back = [("expect_tx", n) for n in steps], [("complete_tx", n) for n in steps]
    yield "bytes are missing", [("init", 2), *there, ("arrive", 1), *back, ("arrive", 1)]
    yield "bytes come first", [("init", 2), *back, ("arrive", 1), *there, ("arrive", 1)]
    yield "bytes come last", [("init", 1), *_tested("arrive.expect_tx", MOST, 1), *back, ("arrive", 1)]
    yield "bytes came", [("init", 1), ("complete_tx", MOST), *_tested("arrive.expect_tx", MOST, 2)]
    yield "no more yet", [("init", MOST), *[("arrive.noComplete", 1 << bit) for bit in range(19)], ("arrive", 1)]
    yield "dropped", [("init", 40), *_tested("arrive_drop", 3, 4), ("arrive", 28), ("arrive", 28)]
    yield "dropped one by one", [("init", 4), *[("arrive_drop", 1), ("arrive", 3)], ("arrive_drop", 1), ("arrive", 2)]
    yield "dropped early", [("init", 9), ("arrive_drop.noComplete", 2), ("arrive", 7), ("arrive", 7)]
    yield "dropped with bytes", [("init", 3), ("arrive_drop.expect_tx", 64), ("arrive", 2), ("complete_tx", 64)]
    for name in ("remote arrive", "remote arrive_drop"):
        yield name, [("init", 20), *_tested(name, 1, 5)]
    yield "remote arrive.expect_tx", [("init", 2), *_tested("remote arrive.expect_tx", 16, 2), ("complete_tx", 32)]
    yield "remote bytes", [("init", 1), ("remote expect_tx", 4096), ("arrive", 1), ("remote complete_tx", 4096)]
    yield "cp.async", [("init", 3), ("cp.async.mbarrier.arrive", 0), *[("cp.async.mbarrier.arrive.noinc", 0)] * 4]
    yield "copied", [("init", 1), ("expect_tx", 4096), ("cp.async.bulk", 2048), ("arrive", 1), ("cp.async.bulk", 2048)]
    yield "copied first", [("init", 1), ("cp.async.bulk", 2048), ("arrive.expect_tx", 2048), ("arrive", 1)]
    for seed in range(24):
        yield f"drawn {seed}", _drawn(random.Random(seed))


def _tested(name: str, number: int, times: int) -> list[Operation]:
    """Repeat an operation. After each repetition, test for the completed phase."""
    return [(name, number), ("test_wait.parity 0", 0), ("test_wait.parity 1", 0)] * times


def _drawn(draw: random.Random) -> list[Operation]:
    count = draw.choice((1, 2, 3, 32, 128, 1000, MOST))
    operations: list[Operation] = [("init", count)]
    barrier = after(Barrier(0, 0, 0, 0), operations[0])
    while len(operations) < 40:
        name, least, most = draw.choice(_possible(barrier))
        number = draw.randint(least, most)
        operations.append((draw.choice(("", REMOTE)) * (REMOTE + name in OPERATIONS) + name, number))
        barrier = after(barrier, operations[-1])
    return operations


def _possible(barrier: Barrier) -> list[tuple[str, int, int]]:
    """Return operations with the least and the greatest number whose outcome is defined.

    Operations with a higher probability occur twice.
    """
    pending, tx = barrier.pending_count, barrier.tx_count
    more, less, all_of_it = min(MOST - tx, MOST), min(MOST + tx, MOST), max(tx, 0)
    found = [("expect_tx", 0, more), ("complete_tx", 0, less), ("complete_tx", all_of_it, all_of_it)]
    if pending:
        found += [("arrive", 1, pending), ("arrive", pending, pending), ("arrive.expect_tx", 0, more)]
    if pending > 1 and barrier.expected_count > 2:
        found.append(("arrive_drop", 1, min(pending, barrier.expected_count) // 2))
    return found


def undefined_cases() -> Iterator[Case]:
    state: list[Operation] = [("init", 5), ("arrive", 1), ("expect_tx", 64)]
    for way in ("look", "atom.add 0", "bulk store", "remote look"):
        yield f"by {way}", [*state, (way, 0)]
    for way, number in (("membar", 0), ("fence.proxy.async", 0), ("nanosleep", 1000000), ("test_wait.parity 0", 0)):
        yield f"by look, after {way}", [*state, (way, number), ("look", 0)]
    yield (
        "goes on after inval",
        [*state, ("inval", 0), ("arrive", 1), ("complete_tx", 64), ("arrive", 3), ("arrive", 1)],
    )
    yield "goes on after store", [*state, ("store", 7), ("arrive", 1), ("look", 0)]
    yield "arrive 0", [("init", 5), ("arrive", 0), ("arrive", 2), ("arrive", 0), ("expect_tx", 4096), ("arrive", 0)]
    yield "arrive 0 where none is left", [("init", 1), ("arrive.expect_tx", 4096), ("arrive", 0)]
    yield "arrive.noComplete 0", [("init", 5), ("expect_tx", 64), ("arrive.noComplete", 0), ("arrive", 5)]
    yield "arrive.noComplete 0, none left", [("init", 1), ("arrive.expect_tx", 4096), ("arrive.noComplete", 0)]
    yield "invalidated", [("init", 5), ("arrive", 1), ("expect_tx", 64), ("inval", 0)]
    yield "made again", [("init", 5), ("inval", 0), ("init", 3), ("arrive", 3)]
    yield "of no arrivals", [("init", 0), ("expect_tx", 16), ("complete_tx", 16), ("arrive", 1)]
    yield "of too many", [("init", MOST + 1), ("arrive", 1), ("arrive", 1)]
    yield "of a larger number", [("init", MOST + 6), ("arrive", 1)]
    yield "never made", [("store", 0), ("test_wait.parity 0", 0), ("test_wait.parity 1", 0), ("arrive", 1)]
    yield "never made, bytes", [("store", 0), ("expect_tx", 64), ("complete_tx", 64)]
    yield "of numbers", [("store", 12345), ("arrive", 1), ("expect_tx", 16)]
    yield "all dropped", [("init", 2), ("arrive_drop", 1), ("arrive_drop", 1), ("test_wait.parity 0", 0)]
    yield "all dropped, and on", [("init", 1), ("arrive_drop", 1), ("arrive", 1), ("arrive", 1)]
    yield "too many arrive", [("init", 2), ("arrive", 3)]
    yield "too many arrive later", [("init", 3), ("arrive", 1), ("arrive", 7), ("arrive", 1)]
    yield "none arrives", [("init", 2), ("arrive", 0)]
    yield "none is left", [("init", 1), ("arrive.expect_tx", 16), ("arrive", 1), ("complete_tx", 16)]
    yield "noComplete completes", [("init", 2), ("arrive.noComplete", 2), ("arrive", 1)]
    for name in ("expect_tx", "complete_tx"):
        yield f"{name} at the limit", [("init", 2), (name, MOST), (name, 1), (name, 1), (name, 62)]
        yield f"{name} of two limits", [("init", 2), (name, MOST), (name, MOST), (name, MOST)]
        for number in (MOST + 1, (1 << 21) - 1, 1 << 21, 1 << 22, (1 << 32) - 16):
            yield f"{name} {number}", [("init", 2), (name, number)]
    yield "arrive.expect_tx 1048576", [("init", 2), ("arrive.expect_tx", MOST + 1)]
