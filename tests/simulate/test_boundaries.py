"""Tests of the last accepted and the first refused value of limits: of texts, of addresses, and of operands."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._device import refusals
from cuda_tma.simulate._machine import deadline
from cuda_tma.simulate._memory.global_memory import GlobalMemory, Segment
from cuda_tma.simulate._ptx import parse, variables
from cuda_tma.simulate._ptx.module import COUNTS, are_counts
from cuda_tma.simulate._warps.spaces import WINDOW_BYTES, WINDOWS, space_of

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
WORD = 1 << 64
CTA = simulate.Device("10.0", schedules=1)


# ---- declarations in PTX ----


@pytest.mark.parametrize(
    ("declared", "refusal"),
    [
        (".global .align 65536 .b8 a[4];", ""),
        (".global .align 131072 .b8 a[4];", ".align has 131072; write a power of two, at most 65536"),
        (".global .align 1 .b8 a[4];", ""),
        (".global .align 0 .b8 a[4];", ".align has 0; write a power of two, at most 65536"),
        (".global .b8 a[64];", ""),
        (".global .b8 a[64] = {1};", ""),
        (".global .b8 a[8][8];", ""),
        (".global .b8 a[65];", "'a'[65] has an invalid extent; write 0 to 64"),
        (".global .b8 a[8][9];", "'a' takes 72 bytes, but a module has at most 64"),
        (".global .b32 a[17];", "'a' takes 68 bytes, but a module has at most 64"),
        (".global .b8 a[0];", ""),
        (".global .b8 a[-1];", "'a'[-1] has an invalid extent; write 0 to 64"),
        (".global .b8 a[0xffffffffffffffff+1];", ""),
        (".global .b8 a[-9223372036854775808];", "'a'[-9223372036854775808] has an invalid extent"),
        (f".global .b64 a = 0b{'1' * 64};", ""),
        (f".global .b64 a = 0b0{'1' * 64};", "has more than 64 bits"),
        (f".global .b64 a = {WORD - 1};", ""),
        (f".global .b64 a = {WORD};", f"'{WORD}' has more than 64 bits"),
        (".global .b64 b; .global .b64 a[1] = {b};", ""),
    ],
)
def test_the_declaration_of_a_variable(monkeypatch, declared, refusal):
    monkeypatch.setattr(variables, "MODULE_BYTES", 64)
    if not refusal:
        assert "a" in parse(HEAD + declared).variables
        return
    with pytest.raises(simulate.ParseError, match="line 4: ") as error:
        parse(HEAD + declared)
    assert refusal in str(error.value)


def test_the_size_of_parameters():
    text = HEAD + ".visible .entry k(.param .b32 a, .param .b8 b[{}]) {{ ret; }}\n"
    assert [each.offset for each in parse(text.format(32_760)).functions["k"].params] == [0, 4]
    with pytest.raises(simulate.ParseError, match="the parameters take 32765 bytes, .* have at most 32764"):
        parse(text.format(32_761))


@pytest.mark.parametrize("directive", [*COUNTS])
def test_the_counts_of_a_directive(directive):
    most = COUNTS[directive]
    accepted = [[1], [(1 << 31) - 1], [1] * most]
    refused = [[], [0], [1 << 31], [1] * (most + 1), ["1"]]
    assert [are_counts(directive, values) for values in accepted + refused] == [True] * 3 + [False] * 5


# ---- addresses ----


@pytest.mark.parametrize("space", ["shared", "local", "param"])
def test_the_window_of_a_state_space(space):
    first, last = WINDOWS[space], WINDOWS[space] + WINDOW_BYTES - 1
    assert [space_of(address) for address in (first - 1, first, last, last + 1)] == ["global", space, space, "global"]


def test_the_segment_of_an_address():
    memory = GlobalMemory()
    assert memory.before(1 << 40) is None and memory.find(1 << 40) is None
    segment = memory.allocate(np.zeros(8, np.uint8), "a")
    ends = segment.start - 1, segment.start, segment.start + 7, segment.start + 8
    assert [memory.find(address) for address in ends] == [None, segment, segment, None]
    assert [memory.before(address) for address in ends] == [None, segment, segment, segment]
    memory.remove(segment, "is gone")
    former = (segment.start, segment.start + 8, "a", "is gone")
    assert [memory.former(address) for address in ends] == [None, former, former, None]
    memory.add(Segment(segment.start, segment.bytes, "b"))
    assert memory.find(segment.start).name == "b" and memory.next_address > segment.stop


ASKED = """.visible .entry k(.param .u64 out, .param .u64 address) {
.reg .pred %p; .reg .b64 %rd<4>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [address];
isspacep.SPACE %p, %rd2; selp.u32 %r1, 1, 0, %p; st.global.u32 [%rd1], %r1; ret; }
"""


@pytest.mark.parametrize("space", ["shared", "shared::cluster", "local", "param", "global", "const"])
def test_isspacep_at_the_ends_of_a_window(space):
    gpu, out = simulate.Device(sanitize=False), np.zeros(1, np.uint32)
    kernel, found = gpu.load(HEAD + ASKED.replace("SPACE", space), "k"), []
    first = WINDOWS["param"] - WINDOW_BYTES if space in ("global", "const") else WINDOWS[space]
    for address in (first - 1, first, first + WINDOW_BYTES - 1, first + WINDOW_BYTES):
        gpu.launch(simulate.Config(1, 1), kernel, out, address)
        found.append(int(out[0]))
    of_cta = [0, 1, 0, 0]  # The last address of the window belongs to a CTA that does not exist.
    assert found == {"shared": of_cta, "global": [1, 1, 1, 0], "const": [0] * 4}.get(space, [0, 1, 1, 0])


# ---- operands ----

BODY = """.visible .entry k(.param .u64 out) {{
.reg .pred %p; .reg .b64 %rd<8>; .reg .b32 %r<8>; .shared .align 16 .b8 tile[64]; .shared .b64 full;
ld.param.u64 %rd1, [out];
{statement};
DONE: ret; }}
"""
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], {0}; ld.shared.u32 %r1, [tile]"
FREE = "; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {0}"
ONE = "mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p bra DONE; "
OPERANDS = [
    ("st.local.b8 [{0}], 1", 262_143, 262_144, "an access to byte 262144 of local memory"),
    ("alloca.u64 %rd2, {0}", 8192, 8193, "stack overflow: alloca requests 8193 bytes"),
    ("alloca.u64 %rd2, {0}", 0, -1, "stack overflow: alloca requests -1 bytes"),
    ("alloca.u64 %rd3, 16; alloca.u64 %rd2, {0}", 8176, 8177, "stack overflow: alloca requests 8177 bytes"),
    ("ld.global.b8 %r1, [%rd1+{0}]", 63, 64, "1 bytes beyond the end of"),
    ("ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd1+{0}]", 48, 64, "16 bytes beyond the end of"),
    ("ld.shared.b8 %r1, [tile+{0}]", 63, 64, "1 bytes at byte 64 of shared memory, of which the CTA has 64"),
    (ONE + "mbarrier.init.shared.b64 [full], {0}", 1, 0, "mbarrier.init with a count of 0; it must be 1 to 1048575"),
    (ONE + "mbarrier.init.shared.b64 [full], {0}", 1_048_575, 1_048_576, "it must be 1 to 1048575"),
    ("barrier.cta.sync {0}, 32", 15, 16, "barrier 16 does not exist; use one of the barriers 0 to 15"),
    ("mov.u32 %r1, {0}; barrier.cta.sync %r1, 32", 15, 16, "barrier 16 does not exist"),
    ("mov.u32 %r1, {0}; barrier.cta.sync 1, %r1", 32, 40, "barrier 1 has a count of 40 threads"),
    ("setmaxnreg.dec.sync.aligned.u32 {0}", 24, 16, "setmaxnreg of 16 registers; use a multiple of 8 from 24 to 256"),
    (ALLOC + FREE, 32, 16, "tcgen05.alloc has 16 columns, but the number must be a power of two from 32 to 512"),
    (ALLOC + FREE, 512, 1024, "tcgen05.alloc has 1024 columns"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "last", "first", "message"), OPERANDS)
def test_an_operand_of_an_instruction(statement, last, first, message):
    out, found = np.zeros(64, np.uint8), []
    for value in (last, first):
        kernel = CTA.load(HEAD + BODY.format(statement=statement.format(value)), "k")
        found.append([str(each) for each in CTA.launch(simulate.Config(1, 32), kernel, out).errors])
    assert not any(message in each for each in found[0]), found[0]
    assert any(message in each for each in found[1]), found[1]


# ---- arguments of a device ----


@pytest.mark.parametrize(
    ("function", "accepted", "refused"),
    [
        (deadline.seconds_of, [1e-9, 0.5, deadline._MOST_SECONDS], [0, -1, deadline._MOST_SECONDS * 1.001]),
        (refusals.schedule_count, [1, refusals.MOST_SCHEDULES], [0, -1, refusals.MOST_SCHEDULES + 1]),
        (lambda given: refusals.count("n", given, 3), [3, 4], [2, -3]),
        (refusals.since_tma, ["9.0", "10.0"], ["8.9", "8.0"]),
    ],
    ids=["seconds", "schedules", "count", "capability"],
)
def test_an_argument(function, accepted, refused):
    for given in accepted:
        assert function(given) == (tuple(map(int, given.split("."))) if isinstance(given, str) else given)
    for given in refused:
        with pytest.raises(ValueError, match=r"; pass "):
            function(given)
