"""Tests of hostile PTX texts. Each text causes a finding or an error message, in limited time and memory."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config, ParseError
from tests.simulate._ptx._hostile import HEAD, launched

RECURSIONS = {
    "itself": ".func g()\n{\ncall g;\nret;\n}\n",
    "with a local variable": ".func g()\n{\n.local .b8 x[64];\ncall g;\nret;\n}\n",
    "by two": ".func h();\n.func g()\n{\ncall h;\nret;\n}\n.func h()\n{\ncall g;\nret;\n}\n",
    "after a place": '.file 1 "a.cu"\n.func g()\n{\n.loc 1 3 1\ncall g;\nret;\n}\n',
}


@pytest.mark.parametrize("name", RECURSIONS)
@pytest.mark.parametrize("threads", [1, 1024])
def test_endless_recursion_is_a_stack_overflow(name, threads):
    (finding,) = launched(f"{RECURSIONS[name]}.visible .entry f()\n{{\ncall g;\nret;\n}}\n", threads).errors
    assert (finding.kind, finding.severity) == ("fault", "error")
    assert "stack overflow" in finding.message and "the recursion is too deep, or does not end" in finding.message
    assert len(finding.threads) == threads


ENTRY = ".visible .entry f()\n{\nret;\n}\n"
DECLARED = {
    "a variable of 1 TiB": (
        ".global .b8 x[1099511627776];",
        r"'x'\[1099511627776\] has an invalid extent; write 0 to 1073741824",
    ),
    "a variable of 40 GB": (".global .align 4 .f32 x[10737418240];", r"'x'\[10737418240\] has an invalid extent"),
    "a product of extents": (
        ".const .b32 x[65536][65536];",
        r"'x' takes 17179869184 bytes, but a module has at most 1073741824",
    ),
    "a vector": (".global .v4 .f32 x[134217728];", r"'x' takes 2147483648 bytes"),
    "many extents": (f".global .b8 x{'[1073741824]' * 9000};", r"'x' takes 1152921504606846976 bytes"),
    "many variables": (".global .b8 x[536870912], y[536870912], z[1];", "the variables take more than 1073741824"),
    "shared memory": (".shared .b8 x[1099511627776];", "'x'.1099511627776."),
    "an extent below zero": (".global .b8 x[-5];", r"'x'\[-5\] has an invalid extent; write 0 to"),
    "an expression below zero": (".shared .b8 x[4-8];", r"'x'\[-4\] has an invalid extent; write 0 to"),
    "an initialized variable": (".global .b8 x[1099511627776] = {1};", r"'x'\[1099511627776\]"),
    "no power of two": (".global .align 3 .b8 x[4];", r"\.align has 3; write a power of two, at most 65536"),
    "an alignment of 1 TiB": (
        ".global .align 1099511627776 .b8 x[4];",
        r"\.align has 1099511627776; write a power of two",
    ),
    "an alignment of zero": (".shared .align 0 .b8 x[4];", r"\.align has 0; write a power of two"),
    "an alignment below zero": (".shared .align -8 .b8 x[4];", r"\.align has -8; write a power of two"),
    "a foreign name": (".global .b64 x = q;", "an initializer names 'q', but it may name only functions"),
    "a name of shared memory": (".shared .b8 s[4]; .global .b64 x = s;", "an initializer names 's', but it may name"),
    "an address in a byte": (
        ".global .b64 y; .global .b8 x[1] = {y};",
        "does not fit .1.: an element that holds an address must have 8 bytes",
    ),
    "a foreign name in a mask": (".global .b8 x[2] = {0xff(q)};", "an initializer names 'q'"),
    "brackets": (f".global .b32 x = {'(' * 5000}1{')' * 5000};", "more than 100 deep"),
    "signs": (f".global .b32 x = {'-' * 5000}1;", "more than 100 deep"),
    "braces": (f".global .b32 x[1] = {'{' * 3000}1{'}' * 3000};", "more than 100 deep"),
    "many digits": (f".global .b8 x[{'9' * 5000}];", "has more than 64 bits"),
    "many hexadecimal digits": (f".global .b8 x = 0x{'f' * 100_000};", "has more than 64 bits"),
}
ENTRIES = {
    "a parameter of 1 TiB": (".entry f(.param .b8 p[1099511627776])\n{\nret;\n}", r"'p'\[1099511627776\]"),
    "parameters": (
        ".entry f(.param .b8 p[30000], .param .b8 q[3000])\n{\nret;\n}",
        "33000 bytes, but those of a function have at most 32764",
    ),
    "a parameter's alignment": (".entry f(.param .align 3 .b8 p[4])\n{\nret;\n}", r"\.align has 3"),
    "local memory": (".entry f()\n{\n.local .b8 x[1099511627776];\nret;\n}", r"'x'\[1099511627776\]"),
    "registers": (".entry f()\n{\n.reg .b32 %r<1000000000>;\nret;\n}", "1000000000 registers are declared here"),
    "registers in parts": (
        f".entry f()\n{{\n{'.reg .b64 %r<262144>;' * 3}\nret;\n}}",
        "a module may declare at most 524288",
    ),
    "registers below zero": (".entry f()\n{\n.reg .b32 %r<-4>;\nret;\n}", "-4 registers are declared here"),
    "registers without a type": (
        ".entry f()\n{\n.reg .foo %r<4>;\nret;\n}",
        "where the type of registers was expected",
    ),
    "maxntid": (
        ".entry f() .maxntid 99999999999, 1, 1\n{\nret;\n}",
        r"\.maxntid has \[99999999999, 1, 1\]; write one to three",
    ),
    "maxntid of a text": ('.entry f() .maxntid "x"\n{\nret;\n}', r"\.maxntid has \['x'\]; write one to three"),
    "maxntid of nothing": (".entry f() .maxntid\n{\nret;\n}", r"\.maxntid has \[\]; write one to three"),
    "reqntid of zero": (".entry f() .reqntid 0\n{\nret;\n}", r"\.reqntid has \[0\]; write one to three"),
    "maxnreg of nothing": (
        ".entry f() .maxnreg\n{\nret;\n}",
        r"\.maxnreg has \[\]; write one integer, each at least 1",
    ),
    "minnctapersm of two": (
        ".entry f() .minnctapersm 1, 2\n{\nret;\n}",
        r"\.minnctapersm has \[1, 2\]; write one integer",
    ),
    "clusters of four": (
        ".entry f() .reqnctapercluster 1,1,1,1\n{\nret;\n}",
        r"\.reqnctapercluster has \[1, 1, 1, 1\]",
    ),
    "blocks": (f".entry f()\n{{\n{'{' * 5000}ret;{'}' * 5000}\n}}", "blocks are nested more than 100 deep"),
    "operands": (f".entry f()\n{{\nmov.b64 _, {'{' * 5000}1{'}' * 5000};\nret;\n}}", "more than 100 deep"),
}


@pytest.mark.parametrize("name", [*DECLARED, *ENTRIES])
def test_a_text_beyond_the_limits_is_refused(name):
    text, sentence = ENTRIES.get(name) or (f"{DECLARED[name][0]}\n{ENTRY}", DECLARED[name][1])
    with pytest.raises(ParseError, match=rf"^PTX line \d+: .*{sentence}"):
        simulate.Device().load(HEAD + text, "f")


@pytest.mark.parametrize(
    "text",
    [
        ".global .align 1024 .b8 x[4];",
        ".extern .shared .align 128 .b8 x[];",
        f".global .b32 x = {'(' * 60}1{')' * 60};",
        ".global .b8 x[268435456];",
        ".global .b32 x[2][2] = {{1, 2}, {3, 4}};",
    ],
)
def test_a_text_within_the_limits_is_read(text):
    simulate.Device().load(f"{HEAD}{text}\n{ENTRY}", "f")


def test_constant_expressions_have_64_bits():
    """Constant expressions have 64 bits, because operations on ever larger integers would take more and more time."""
    expression = "1" + "<<63*9" * 20_000
    kernel = simulate.Device().load(f"{HEAD}.global .b64 x = {expression};\n{ENTRY}", "f")
    assert kernel.name == "f"
    value = simulate._ptx.parse(f"{HEAD}.global .b64 x = 1<<63<<1|5;").variables["x"].initial
    assert value == (5).to_bytes(8, "little")


def test_an_access_after_the_local_variables_grows_the_stack():
    """In the test, two accesses after the local variables extend the stack, and the read returns the written value."""
    text = ".visible .entry f(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<2>; .local .b8 x[256];\n"
    text += "mov.u32 %r1, %tid.x;\nst.local.u32 [x+4096], %r1;\nld.local.u32 %r2, [x+9000];\n"
    text += "ld.local.u32 %r2, [x+4096];\nld.param.u64 %rd1, [p];\nmad.wide.u32 %rd1, %r1, 4, %rd1;\n"
    text += "st.global.u32 [%rd1], %r2;\nret;\n}\n"
    gpu, out = simulate.Device(), np.zeros(64, np.uint32)
    errors = gpu.launch(Config(1, 64), gpu.load(HEAD + text, "f"), out).errors
    assert {error.kind for error in errors} == {"out-of-bounds"}
    np.testing.assert_array_equal(out, np.arange(64))


@pytest.mark.parametrize("threads", [32, 1024])
def test_registers_of_more_than_the_limit_are_refused(threads):
    text = ".visible .entry f()\n{\n.reg .b64 %r<500000>;\nmov.b64 %r1, 1;\nret;\n}\n"
    if threads == 32:
        assert launched(text, threads).findings == ()
    else:
        with pytest.raises(ValueError, match="f has 4000000 bytes of registers in each thread, and 1024 threads"):
            launched(text, threads)


PRINTS = """.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 8 .b8 s[{size}] = {{{bytes}}};
.visible .entry f()
{{
.reg .b64 %rd<4>;
.local .align 8 .b8 d[64];
mov.u64 %rd1, s;
cvta.global.u64 %rd2, %rd1;
mov.u64 %rd3, d;
{stores}
cvta.local.u64 %rd3, %rd3;
{{ .param .b64 p0; st.param.b64 [p0], %rd2; .param .b64 p1; st.param.b64 [p1], %rd3; .param .b32 q;
call (q), vprintf, (p0, p1); }}
ret;
}}
"""


def printed(pattern, *arguments, threads=1):
    """Return the output of printf for arguments of 4 bytes each."""
    data = [*pattern.encode(), 0]
    stores = "\n".join(f"st.local.u32 [%rd3+{4 * i}], {value};" for i, value in enumerate(arguments))
    text = PRINTS.format(size=len(data), bytes=",".join(map(str, data)), stores=stores)
    report = launched(text, threads)
    report.raise_for_errors()
    return report.output


LOST = "\n... the kernel prints more than 4194304 characters: the rest is dropped\n"


@pytest.mark.parametrize(
    ("pattern", "arguments", "output"),
    [
        ("%9999999999d|", (7,), " " * 65535 + "7|"),
        (f"%{'9' * 50_000}d|", (7,), " " * 65535 + "7|"),
        ("%.9999999999d|", (7,), "0" * 65535 + "7|"),
        ("%*d|", (50_000_000, 7), " " * 65535 + "7|"),
        ("%*d|", (-2_147_483_648, 7), "7" + " " * 65535 + "|"),
        ("%.*d|", (50_000_000, 7), "0" * 65535 + "7|"),
        ("%.*d|", (-5, 7), "7|"),
        ("%-+6d|% d|%#x|%8.3d|", (7, 7, 7, 7), "+7    | 7|0x7|     007|"),
        (f"%{'0' * 60_000}", (), f"%{'0' * 60_000}"),
    ],
)
def test_the_width_of_printf_is_bounded(pattern, arguments, output):
    assert printed(pattern, *arguments) == output


@pytest.mark.parametrize("threads", [1, 1024])
def test_the_output_of_one_printf_is_bounded(threads):
    """The output of one printf is limited, because 9,000 numbers of 65,536 characters would take 600 MB in each
    thread."""
    output = printed("%65536%%99999d" * 4000, threads=threads)
    assert output.endswith(LOST) and len(output) < (4 << 20) + 2 * 65536 + len(LOST)
