"""Write results.json from the files that consan_plugin.py wrote, with each test, ConSan's message and the rule of PTX.

Examples
--------
    python evaluation/consan/summarize.py TEST_CONSAN.PY VERSION RESULTS.JSON...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

# RULES maps a message of ConSan to a violated rule, and to the section of the PTX ISA with this rule.
RULES = {
    "outstanding": ("accesses that nothing orders", "Causality Order"),
    "async_copy_global_to_shared": ("access before the wait for cp.async", "cp.async.wait_group"),
    "async_copy_shared_to_global": ("write before the wait for a TMA store", "cp.async.bulk.wait_group"),
    "warpgroup_mma operand read": ("write before the wait for wgmma", "wgmma.wait_group"),
    "missing fence_async_shared": ("missing proxy fence", "Causality Order, proxies"),
    "Deadlock detected": ("deadlock", "mbarrier: phases"),
    "arrive underflow": ("too many arrivals", "mbarrier.arrive"),
    "re-initialized": ("init of a live mbarrier", "mbarrier.init"),
    "before initialization": ("use of a barrier without init", "mbarrier.init"),
    "reused before barrier invalidation": ("memory of a live mbarrier written", "mbarrier.inval"),
}
# ConSan requires a proxy fence between a generic read and the read of a TMA store, but the PTX ISA does not.
WITHOUT_RULE = ("test_ws_join_publishes_proxy_generation",)
REMARKS = [
    "The right kernels with an error break other rules: one stores shared memory that no thread has written, two end "
    "while `cp.async` may still write their shared memory, and one ends without a wait for wgmma.",
    "The test without a rule of PTX demands a proxy fence between two reads.",
    "A write into the memory of a live mbarrier that no thread uses again is not reported.",
]


def rules_of(source: str) -> dict[str, tuple[str, str]]:
    """Return the rule of each test, from the messages that its assertions name."""
    found = {}
    for part in re.split(r"^(?=def test_)", source, flags=re.MULTILINE)[1:]:
        name, part = part[4 : part.index("(")], part.partition("\n@pytest")[0]
        told = next((RULES[each] for each in RULES if each in part), ("", "none"))
        found[name] = (told[0] or "no message", "none") if name in WITHOUT_RULE else told
    return found


def main() -> None:
    source, version, *files = sys.argv[1:]
    rules = rules_of(Path(source).read_text("utf-8"))
    tests = []
    for each in (row for file in files for row in json.loads(Path(file).read_text("utf-8"))):
        rule, section = rules[each["test"].partition("[")[0]]
        kinds = sorted({kind for kind, _ in each["errors"]})
        told = {"rule": rule, "source": section} if each["is_wrong"] else {}
        tests.append(
            {"test": each["test"], "is_wrong": each["is_wrong"], "outcome": each["outcome"], **told, "errors": kinds}
        )
    lines = ",\n".join(f"  {json.dumps(each)}" for each in tests)
    text = f'{{"version": {json.dumps(version)},\n "remarks": {json.dumps(REMARKS)},\n "tests": [\n{lines}\n ]}}\n'
    Path(__file__).with_name("results.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
