"""PTX that endangers the process which judges it: each text ends in a finding or a sentence, within limits."""

from __future__ import annotations

import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def launched(text, threads=32):
    gpu = simulate.Device()
    return gpu.launch(Config(1, threads), gpu.load(HEAD + text, "f"))


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
    """The output of printf, with arguments of 4 bytes each."""
    data = [*pattern.encode(), 0]
    stores = "\n".join(f"st.local.u32 [%rd3+{4 * i}], {value};" for i, value in enumerate(arguments))
    text = PRINTS.format(size=len(data), bytes=",".join(map(str, data)), stores=stores)
    report = launched(text, threads)
    report.raise_for_errors()
    return report.output


LOST = "\n... the kernel prints more than 4194304 characters: the rest is not kept\n"


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
    """Nine thousand numbers of 65,536 characters each would be 600 MB, of each thread."""
    output = printed("%65536%%99999d" * 4000, threads=threads)
    assert output.endswith(LOST) and len(output) < (4 << 20) + 2 * 65536 + len(LOST)
