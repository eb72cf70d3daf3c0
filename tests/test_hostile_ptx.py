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
