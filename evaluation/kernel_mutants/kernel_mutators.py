"""Small synchronization faults in CUDA C++, from which `mutate_kernels.py` draws.

A mutant replaces one piece of text by another. The mutators read kernels as text: they blank comments, match brackets,
and divide blocks into statements. This suffices to delete a statement, or to exchange a statement with its neighbor. A
text that does not compile is not a mutant. `EXPECTED` lists the right kinds of findings of each mutator. The list was
written before any mutant ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cuda_cpp import Statement, arguments_of, blocks_of, call_at, masked, strings_of

# ---- the statements of each role ----

CALLS = {
    "proxy_fence": "fence_proxy_async fence_proxy_async_global fence_proxy_async_cluster fence_proxy_async_all",
    "init_fence": "fence_barrier_init",
    "map_fence": "fence_tensor_map_acquire fence_tensor_map_release",
    "memory_fence": "__threadfence __threadfence_block",
    "product_fence": "wgmma_fence",
    "wait": "wait wait_cluster cluster_wait wait_or_trap drain acquire griddepcontrol_wait",
    "arrive": "arrive arrive_at arrive_expect_tx expect_tx release release_async_read cluster_arrive "
    "cluster_arrive_relaxed named_barrier_arrive store_release add_release",
    "sync": "__syncthreads __syncwarp cluster_sync named_barrier_sync sync",
    "commit": "commit_group wgmma_commit",
    "wait_group": "wait_group wait_group_read wgmma_wait",
    "init": "init",
    "copy": "load load_multicast load_im2col load_bulk load_bulk_multicast send_bulk store store_bulk",
}
ROLES = {name: role for role, names in CALLS.items() for name in names.split()}
# Each row contains a pattern for the text of an asm statement and the role of the statement, and the first match
# applies.
ASM_ROLES = (
    ("fence.proxy.async", "proxy_fence"),
    ("fence.mbarrier_init", "init_fence"),
    ("fence.proxy.tensormap", "map_fence"),
    ("wgmma.fence", "product_fence"),
    ("mbarrier.init", "init"),
    ("barrier.cluster", "sync"),
    ("mbarrier.arrive", "arrive"),
    ("expect_tx", "arrive"),
    ("barrier.sync", "sync"),
    ("barrier.arrive", "arrive"),
    ("commit_group", "commit"),
    ("wait_group", "wait_group"),
)

# ---- the kinds of findings that are right ----

# _ORDER contains the kinds of findings that are right if a wait is missing.
_ORDER = {"race", "early-exit", "uninitialized-read"}
# _COUNTS contains the kinds of findings that are right if the numbers of arriving and expected threads differ.
_COUNTS = {"deadlock", "barrier-use", "transaction-count", "barrier-divergence", "no-progress"}
_OF_ROLE = {
    "proxy_fence": {"missing-proxy-fence"},
    "init_fence": {"missing-proxy-fence", "barrier-use", "race"},
    "map_fence": {"missing-tensor-map-fence"},
    "memory_fence": {"race"},
    "product_fence": {"wgmma-order"},
    "wait": _ORDER | _COUNTS | {"missing-proxy-fence", "wgmma-order"},
    "arrive": _ORDER | _COUNTS,
    "sync": _ORDER | _COUNTS | {"missing-proxy-fence", "missing-tensor-map-fence", "wgmma-order"},
    "commit": _ORDER | {"wgmma-order"},
    "wait_group": _ORDER | {"wgmma-order"},
    "init": {"barrier-use"},
    "copy": _ORDER | _COUNTS | {"missing-proxy-fence", "missing-tensor-map-fence"},
}
EXPECTED: dict[str, frozenset[str]] = {
    **{f"drop_{role}": frozenset(kinds) for role, kinds in _OF_ROLE.items()},
    # After an exchange of two statements, the moved statement counts as missing at its original place.
    **{f"move_{role}": frozenset(kinds | _ORDER | {"deadlock", "barrier-use"}) for role, kinds in _OF_ROLE.items()},
    "change_count": frozenset(_ORDER | _COUNTS),
    "change_parity": frozenset(_ORDER | _COUNTS | {"missing-proxy-fence"}),
    "change_bytes": frozenset(_ORDER | _COUNTS | {"out-of-bounds", "misaligned"}),
    "change_scope": frozenset(_ORDER | {"barrier-use", "missing-proxy-fence", "missing-tensor-map-fence"}),
    "change_proxy": frozenset({"missing-proxy-fence", "missing-tensor-map-fence"}),
    "change_stage": frozenset(_ORDER | _COUNTS | {"missing-proxy-fence", "out-of-bounds", "misaligned"}),
    "change_iterations": frozenset(_ORDER | _COUNTS | {"missing-proxy-fence", "out-of-bounds", "misaligned"}),
    "change_mask": frozenset(_ORDER | _COUNTS | {"cluster", "missing-proxy-fence"}),
    "change_depth": frozenset(_ORDER | {"wgmma-order"}),
}
# The mutators in KEEPS_ORDER may change only values: the loaded data, its place, or the number of loads.
KEEPS_ORDER = {"change_stage", "change_iterations", "change_mask", "change_bytes", "move_copy"}


@dataclass(frozen=True)
class Mutant:
    """A change by `mutator`; in lines `line` to `last`, `new` replaces the characters `start` to `end`."""

    line: int
    start: int
    end: int
    new: str
    what: str
    mutator: str
    last: int

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


def mutants_of(text: str) -> list[Mutant]:
    """Return all mutants of a C++ text in order."""
    code = masked(text)
    found = {
        *_of_statements(text, code),
        *_of_calls(text, code),
        *_of_words(text, code),
        *_of_assembly(text),
        *_of_loops(text, code),
    }
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.mutator, mutant.new))


def _mutant(text: str, mutator: str, start: int, end: int, new: str) -> Mutant:
    old, now = (" ".join(piece.split()) for piece in (text[start:end], new))
    line, lines = text.count("\n", 0, start) + 1, text.count("\n", start, end)
    # The new text has the same number of line ends, so that the numbers of the following lines do not change.
    new += "\n" * (lines - new.count("\n"))
    return Mutant(line, start, end, new, f"{old} -> {now}", mutator, line + lines)


# ---- complete statements ----


def _role(text: str, statement: Statement) -> str | None:
    """Return the role of a statement that is one call, or that is one asm statement without results."""
    if not statement.is_simple:
        return None
    words = text[statement.start : statement.end]
    if words.startswith("asm"):
        if re.search(r'"[=+]', words):
            return None
        return next((role for part, role in ASM_ROLES if part in words), None)
    call = call_at(words)
    return ROLES.get(call) if call else None


def _of_statements(text: str, code: str) -> Iterator[Mutant]:
    """Yield mutants that lack a statement, or in which a statement is exchanged with the next one."""
    for block in blocks_of(code):
        for statement in block:
            role = _role(text, statement)
            if role and role != "copy":
                yield _mutant(text, f"drop_{role}", statement.start, statement.end, ";")
        for one, other in pairwise(block):
            role = _moved(_role(text, one), _role(text, other))
            a, between, b = text[one.start : one.end], text[one.end : other.start], text[other.start : other.end]
            leaves = any(re.match(r"return\b|break\b|continue\b", piece) for piece in (a, b))
            if role and a != b and not leaves and a.count("\n") + b.count("\n") < 12:
                yield _mutant(text, f"move_{role}", one.start, other.end, b + between + a)


def _moved(one: str | None, other: str | None) -> str | None:
    """Return the role of an exchange of two statements, which is the narrower of their two roles."""
    order = [*CALLS]
    return min(filter(None, (one, other)), key=order.index, default=None)


# ---- arguments ----


def _of_calls(text: str, code: str) -> Iterator[Mutant]:
    for match in re.finditer(r"\b(\w+)(<[^;{}<>()]*(?:\([^()]*\))?[^;{}<>()]*>)?\(", code):
        name, spans = match[1], arguments_of(code, match.end() - 1)
        if not spans and not code.startswith("()", match.end() - 1):
            continue
        spans = spans or []
        given = [text[start:end] for start, end in spans]
        if any(re.match(r"(const )?(unsigned|int|Stage<\w+>|auto|bool|float)\b[ &*]+\w+$", each) for each in given):
            continue  # The call is skipped, because the text is the declaration of a function.
        for mutator, number, new in _arguments(name, given):
            start, end = spans[number]
            yield _mutant(text, mutator, start, end, new)
        yield from _fewer_tiles(text, name, spans, given)
        yield from _depths(text, name, match)


def _arguments(name: str, given: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the replacements of arguments as (mutator, index of the argument, replacement)."""
    if name in ("init", "arrive") and given:
        yield from (("change_count", 0, f"({given[0]}) {change}") for change in ("+ 1", "- 1"))
    if name in ("named_barrier_sync", "named_barrier_arrive"):
        yield from (("change_count", len(given) - 1, f"({given[-1]}) {change}") for change in ("+ 32", "- 32"))
    if name in ("wait", "wait_cluster", "wait_or_trap", "try_wait") and given and not re.match(r"\w+$", given[-1]):
        yield "change_parity", len(given) - 1, f"({given[-1]}) ^ 1"
    if name in ("wait", "wait_cluster", "wait_or_trap") and given and re.match(r"[01]$|parity$|turn$", given[-1]):
        yield "change_parity", len(given) - 1, f"({given[-1]}) ^ 1"
    if name in ("arrive_expect_tx", "expect_tx") and len(given) == 1:
        yield from (("change_bytes", 0, f"{_bytes(given[0])} {change}") for change in ("+ 16", "- 16"))
    if name in ("acquire", "acquire_cluster") and len(given) == 2:
        yield from (("change_bytes", 1, f"{_bytes(given[1])} {change}") for change in ("+ 16", "- 16"))
    if name in ("load_bulk", "load_bulk_multicast", "store_bulk") and len(given) > 2:
        yield "change_bytes", 2, f"({given[2]}) - 16"


def _bytes(given: str) -> str:
    is_number = re.search(r"\d|bytes|Bytes|sizeof|\*", re.sub(r"\[[^\]]*\]", "", given))
    return f"({given})" if is_number else f"sizeof({given})"


def _fewer_tiles(text: str, name: str, spans: list[tuple[int, int]], given: list[str]) -> Iterator[Mutant]:
    """Yield byte counts that omit one of several tiles."""
    first = {"arrive_expect_tx": 0, "acquire": 1}.get(name)
    if first is not None and len(given) == first + 2 and not given[-1].startswith("is_"):
        yield _mutant(text, "change_bytes", spans[-2][1], spans[-1][1], "")


def _depths(text: str, name: str, match: re.Match) -> Iterator[Mutant]:
    """Yield waits that leave one more group pending."""
    if name in ("wait_group", "wait_group_read", "wgmma_wait"):
        depth = (match[2] or "<0>")[1:-1]
        start, end = match.end(1), match.end() - 1
        yield _mutant(text, "change_depth", start, end, f"<({depth}) + 1>")


# ---- names ----

_WORDS = (
    ("change_scope", r"\bwait_cluster(?=\()", "wait"),
    ("change_scope", r"\bcluster_sync\(\)", "__syncthreads()"),
    ("change_scope", r"\b__syncthreads\(\)", "__syncwarp()"),
    ("change_scope", r"\bScope::(?:gpu|sys)\b", "Scope::cta"),
    ("change_scope", r"\barrive_at\((\w+)\)", r"in_cta(\1).release_async_read()"),
    ("change_scope", r"\bcluster_arrive\(\)", "cluster_arrive_relaxed()"),
    ("change_scope", r"\bwait_group(?=[<(])", "wait_group_read"),
    ("change_scope", r"\b__threadfence\(\)", "__threadfence_block()"),
    ("change_proxy", r"\bfence_proxy_async_global\(\)", "fence_proxy_async()"),
    ("change_proxy", r"\bfence_proxy_async\(\)", "fence_proxy_async_global()"),
    ("change_proxy", r"(?<=\.)release(?=\(at\))", "release_async_read"),
    ("change_parity", r"\bparity = 0\b", "parity = 1"),
    ("change_parity", r"\bparity \^= 1", "parity ^= 0"),
    ("change_parity", r"(?<=/ STAGES) % 2", " % 2 ^ 1"),
    ("change_stage", r"\[(at\.index|turn\.index|stage)\]", r"[\1 ^ 1]"),
    ("change_stage", r"\[(\w+) % (\w+)\]", r"[(\1 + 1) % \2]"),
    ("change_stage", r"\((\w+) \+ STAGES - STORES\)", r"(\1 + STAGES - STORES + 1)"),
    ("change_stage", r"(?<=release_async_read\()before\b", "at"),
    ("change_mask", r"\(1 << (\w+(?:\(\))?)\) - 1", "1"),
    ("change_mask", r"\(1 << (\w+(?:\(\))?)\) - 1", r"(1 << \1) - 2"),
    ("change_mask", r"\bp\.cta_mask\b", "(p.cta_mask & 1)"),
    ("change_mask", r"(?<==) __activemask\(\)", " 1u"),
    ("change_mask", r"(?<=__syncwarp\()here", "1u"),
    ("change_mask", r"\(thread < Ctas\)", "(thread < Ctas - 1)"),
    ("change_mask", r"\bthread < Ctas\b", "thread < 1"),
)
_ASSEMBLY = (
    ("change_scope", r"(?<=\.acquire)\.cluster\b", ".cta"),
    ("change_scope", r"(?<=\.release)\.cluster(?=\.shared)", ".cta"),
    ("change_scope", r"(?<=barrier\.cluster\.arrive)\.release", ".relaxed"),
    ("change_scope", r"(?<=cp\.async\.bulk\.wait_group)(?= )", ".read"),
    ("change_scope", r"(?<=^st\.)release(?=\.)", "relaxed"),
    ("change_scope", r"(?<=^ld\.)acquire(?=\.)", "relaxed"),
    ("change_scope", r"(?<=^red\.)release(?=\.)", "relaxed"),
    ("change_scope", r"(?<=^atom\.)acq_rel(?=\.)", "relaxed"),
    ("change_proxy", r"(?<=fence\.proxy\.async\.)shared::cta", "global"),
    ("change_proxy", r"(?<=fence\.proxy\.async\.)global", "shared::cta"),
)


def _of_words(text: str, code: str) -> Iterator[Mutant]:
    for mutator, pattern, new in _WORDS:
        for match in re.finditer(pattern, code):
            yield _mutant(text, mutator, match.start(), match.end(), match.expand(new))


def _of_assembly(text: str) -> Iterator[Mutant]:
    for start, end in strings_of(text):
        for mutator, pattern, new in _ASSEMBLY:
            for match in re.finditer(pattern, text[start:end]):
                yield _mutant(text, mutator, start + match.start(), start + match.end(), new)


# ---- loops ----

_FOR = re.compile(r"\bfor \((?:int|unsigned|Stage<[^>]*>)? ?(?P<init>[^;]*); *(?P<test>[^;]+); *[^;{}]*?\)")


def _of_loops(text: str, code: str) -> Iterator[Mutant]:
    """Yield loops that copy or wait with one iteration less or more."""
    for match in _FOR.finditer(code):
        body = code[match.end() : match.end() + 700].split("\n\n")[0]
        if not re.search(rf"\b({'|'.join(ROLES)})\b *(<[^;]*>)?\(", body):
            continue
        if bound := re.fullmatch(r"(\w+) < (.+)", match["test"]):
            start, end = match.span("test")
            for change in ("- 1", "+ 1"):
                yield _mutant(text, "change_iterations", start, end, f"{bound[1]} < {bound[2]} {change}")
        if begin := re.match(r"(\w+) = 0\b", match["init"]):
            start = match.start("init")
            yield _mutant(text, "change_iterations", start, start + begin.end(), f"{begin[1]} = 1")
