"""Tests that commands with random arguments print no traceback, and print JSON on request."""

import contextlib
import io
import json

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from cuda_tma._command import cli
from cuda_tma._command.options import OPTIONS
from cuda_tma.codec import encode
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

HUGE = "99999999999999999999"
HEX = encode(LEGAL).hex()
SIZES = st.lists(st.one_of(st.integers(-3, 300), st.sampled_from([2**31, 2**32, 2**63, 2**64, int(HUGE)])), max_size=6)
ODD = st.one_of(
    st.text(max_size=8), st.sampled_from(["", "x", "-", "0x", "1e3", "nan", "9" * 5000, "[a]", "\0", "\udcff", "/"])
)
LEGAL_VALUES = {
    "--shape": "8x64x64",
    "--dtype": "bfloat16",
    "--strides": "4096x64x1",
    "--address": "0x1000",
    "--data-type": "bfloat16",
    "--box": "1x8x64",
    "--kernel-size": "3",
    "--padding": "0:1",
    "--stride": "2",
    "--dilation": "1",
    "--lower-corner": "-1",
    "--upper-corner": "-1",
    "--wide": "W",
    "--channels": "64",
    "--pixels": "128",
    "--element-strides": "1x1x1",
    "--interleave": "NONE",
    "--swizzle": "128B",
    "--l2-promotion": "256B",
    "--oob-fill": "NAN",
    "--allocation-class": "LARGE",
    "--compute-capability": "sm_100a",
    "--access": "row",
    "--at": "0x0x0",
    "--smem-limit-bytes": "65536",
}
MAPS = st.sampled_from(
    [
        HEX,
        encode(LEGAL_IM2COL).hex(),
        "ff" * 128,
        HEX[:-8] + "ffffffff",
        HEX[:16] + "7" + HEX[17:],
        HEX[:-2],
        " ".join(f"0x{int.from_bytes(encode(LEGAL)[i : i + 8], 'little'):016x}" for i in range(0, 128, 8)),
        "/dev/zero",
        "/no/such",
        "-",
    ]
)


@st.composite
def values(draw, flag, legal=None):
    """Draw values for a command-line option. Most values are legal, because the command refuses illegal values
    early."""
    if draw(st.integers(0, 9)):
        return legal or LEGAL_VALUES[flag]
    sizes = SIZES.map(lambda found: "x".join(map(str, found)))
    return draw(st.one_of(sizes, st.integers(-1, 2**65).map(str), ODD))


FLAGS = st.sampled_from(sorted(LEGAL_VALUES))
OPTION = FLAGS.flatmap(lambda flag: values(flag).map(lambda value: f"{flag}={value}"))
FEW = st.lists(OPTION, max_size=3)
MODES = {
    "tiled": ["--box"],
    "convolution": ["--kernel-size", "--channels", "--pixels"],
    "corners": ["--lower-corner", "--upper-corner", "--channels", "--pixels"],
    "wide": ["--wide", "--lower-corner", "--upper-corner", "--channels", "--pixels"],
}


@st.composite
def tensors(draw):
    """Draw command-line options for one mode of tensor maps, and sometimes options for other modes."""
    flags = ["--shape", "--dtype", *MODES[draw(st.sampled_from(sorted(MODES)))]]
    return [f"{flag}={draw(values(flag))}" for flag in flags] + (draw(FEW) if draw(st.booleans()) else [])


REST = st.one_of(tensors(), tensors(), MAPS.map(lambda text: [text]), FEW)
COMMANDS = st.one_of(
    st.tuples(st.sampled_from(["check", "decode"]), REST).map(lambda found: [found[0], *found[1]]),
    st.tuples(MAPS, MAPS).map(lambda found: ["diff", *found]),
    st.tuples(values("--shape", "64x64"), FEW).map(lambda found: ["suggest", f"--shape={found[0]}", *found[1]]),
    st.tuples(st.sampled_from(["tile", "banks", "box", "tiles"]), REST).map(
        lambda found: ["plot", found[0], *found[1], "--output", "/dev/null/x.png"]
    ),
    st.lists(st.one_of(ODD, FLAGS, MAPS, st.sampled_from(["check", "plot", "--help", "--version"])), max_size=4),
)
EXTRA = st.sampled_from([[], ["--json"], ["--json"], ["--warnings"], ["--json", "--warnings"]])


class Figure:
    def savefig(self, *_, **__):
        pass


@pytest.fixture(autouse=True)
def pictures_are_not_drawn(monkeypatch):
    plot = pytest.importorskip("cuda_tma.plot")
    for name in ("tile", "banks", "box", "tiles"):
        monkeypatch.setattr(plot, name, lambda *_: Figure())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COMMANDS, EXTRA)
@example(["check", "--shape", f"{HUGE}x5", "--box", "32x32"], ["--json"])
@example(["check", "--shape", "128x128", "--box", "32x32", "--address=-16"], ["--json"])
@example(["check", "--shape", "128x128", "--box", "32x32", "--address", HUGE], ["--json"])
@example(["check", "--shape", "128x128", "--strides", f"{HUGE}x1", "--box", "32x32"], ["--json"])
@example(["plot", "banks", "--shape", "x".join(["256"] * 5), "--box", "x".join(["256"] * 5), "--output", "x.png"], [])
def test_every_command_line_has_an_outcome(command, extra):
    argv = [*command, *extra]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", None)
        status = cli.main(argv)
    out, err = out.getvalue(), err.getvalue()
    event(f"{command[0] if command and command[0].isalpha() else 'no command'}: {status}")
    assert status in (0, 1, 2)
    if "--help" in argv or "--version" in argv:
        return
    assert out or err
    if "--json" in argv:
        answer = json.loads(out)
        if status == 2:
            assert list(answer) == ["error"] and err.startswith(f"cuda-tma: {answer['error']}"[:20])
        if command[:1] in (["check"], ["decode"], ["plot"], ["suggest"]) and status == 1:
            assert answer["accepted"] is False and (answer["violations"] or answer["error"])
    elif status == 2:
        assert out == "" and err.startswith("cuda-tma: ")


def test_every_option_is_tried():
    assert {option.flag for option in OPTIONS} <= set(LEGAL_VALUES)
