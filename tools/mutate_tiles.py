"""Change the tiles of the examples in C++ alone, and run them: on a GPU of compute capability 9.0, in about a minute.

    python tools/mutate_tiles.py                   # every mutation
    python tools/mutate_tiles.py --only gemm       # those of one example
    python tools/mutate_tiles.py --list

Each is tried in two ways (tile_mutations.py has them). With maps made for the tile of before, as a Python has them that
says the box a second time: the launch must be refused, by a message that names both sides. With tensors given to the
launch, as the examples do: what comes out must be right, in every element, at the new tile. Several processes share the
work, so that one which loses its context loses only its own; none is waited for longer than --seconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from tile_mutations import MUTATIONS, Mutation, refusal  # noqa: E402

EVERY = {"kv_tiles": 9}  # of an example's small sizes, where there are many
PROCESSES = 8


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="an example's name")
    parser.add_argument("--list", action="store_true", help="name the mutations, and run nothing")
    parser.add_argument("--seconds", type=float, default=110, help="how long to wait for each process")
    parser.add_argument("--share", help=argparse.SUPPRESS)  # which of how many: 3/8
    given = parser.parse_args(arguments)
    mutations = [mutation for mutation in MUTATIONS if given.only in (None, mutation.example)]
    if given.list:
        print(*mutations, sep="\n")
    elif given.share:
        first, step = map(int, given.share.split("/"))
        for mutation in mutations[first::step]:
            print(json.dumps({"mutation": str(mutation), **tried(mutation)}), flush=True)
    else:
        return report(mutations, list(in_processes(given.only, given.seconds)))
    return 0


def tried(mutation: Mutation) -> dict[str, str]:
    """What became of it in both ways; "ok" or what went wrong."""
    return {"maps of before": _outcome(_refused, mutation), "tensors": _outcome(_computed, mutation)}


def _outcome(way, mutation: Mutation) -> str:
    try:
        return way(mutation)
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def _refused(mutation: Mutation) -> str:
    module, before = changed(mutation)
    return "no other box" if refusal(module, before) is None else "ok"


def _computed(mutation: Mutation) -> str:
    """The example's own check of its own cases."""
    module, _ = changed(mutation)
    if not hasattr(module, "cases"):
        module.main()
        return "ok"
    for _, ours, rivals, *_ in module.cases(module.SMALL):
        for run in (ours, *rivals.values()):
            run()
    module.torch.cuda.synchronize()
    return "ok"


def changed(mutation: Mutation):
    """The example with the mutation, and its source before."""
    module = importlib.reload(importlib.import_module(mutation.example))
    before, module.SOURCE = module.SOURCE, mutation.applied(module.SOURCE)
    if mutation.example in EVERY:
        module.SMALL = module.SMALL[:: EVERY[mutation.example]]
        module.HEAD_DIMS = module.HEAD_DIMS[:2]
    if hasattr(module, "bank_conflicts"):
        module.bank_conflicts = lambda *_: 1  # another swizzle may have some, and still compute right
    return module, before


def in_processes(only: str | None, seconds: float) -> Iterator[dict[str, str]]:
    """The results of all processes."""
    command = [sys.executable, __file__, *(["--only", only] if only else []), "--share"]
    shares = [f"{share}/{PROCESSES}" for share in range(PROCESSES)]
    running = [subprocess.Popen([*command, share], stdout=subprocess.PIPE, text=True) for share in shares]
    until = time.monotonic() + seconds
    for process in running:
        try:
            lines, _ = process.communicate(timeout=max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            lines, _ = process.communicate()
        yield from (json.loads(line) for line in lines.splitlines() if line.startswith("{"))


def report(mutations: list[Mutation], results: list[dict[str, str]]) -> int:
    """Print what is wrong, and how many of what; 0 if all is right."""
    missing = {*map(str, mutations)} - {result["mutation"] for result in results}
    counts = {way: Counter(result[way] for result in results) for way in ("maps of before", "tensors")}
    wrong = [result for result in results if result["tensors"] != "ok"]
    wrong += [result for result in results if result["maps of before"] not in ("ok", "no other box")]
    for result in wrong:
        print("WRONG:", *(f"{key}: {value}." for key, value in result.items()))
    for name in sorted(missing):
        print("NOT RUN:", name)
    before, tensors = counts["maps of before"], counts["tensors"]
    print(
        f"{len(results)} of {len(mutations)} mutations: with the maps of before {before['ok']} refused, both sides "
        f"named, {before['no other box']} with the same box as before; with tensors {tensors['ok']} right at the new "
        "tile"
    )
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
