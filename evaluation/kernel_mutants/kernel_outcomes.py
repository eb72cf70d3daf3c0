"""What became of a mutant: whether what was found is of the right kind, and near what was changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_mutators import EXPECTED, KEEPS_ORDER

NEAR = 3  # lines
FOUND, FAR, EQUIVALENT, VALUES, MISSED = "found", "far away", "equivalent", "values", "missed"
Frame = tuple[str, int]  # file, line
Chain = Sequence[Frame]  # the statement, and the calls that it is inlined by


@dataclass(frozen=True)
class Culprit:
    """What was changed: its own lines, and the calls by which it gets into the kernel.

    Attributes
    ----------
    header : str
        The file's name; empty for the kernel.
    lines : (int, int)
        The first, and the last.
    chains : frozenset
        In the kernel without the fault, of each instruction of these lines: the calls that lead there.
    """

    header: str
    lines: tuple[int, int]
    chains: frozenset[tuple[Frame, ...]]

    @classmethod
    def of(cls, header: str, lines: tuple[int, int], every: Iterable[Chain]) -> Culprit:
        first, last = lines
        empty = cls(header, lines, frozenset())
        found = {
            tuple(map(tuple, chain[i:]))
            for chain in every
            for i, (file, line) in enumerate(chain)
            if empty._is_here(file) and first <= line <= last
        }
        return cls(header, lines, frozenset(found))

    def _is_here(self, file: str) -> bool:
        return file.endswith(f"cuda_tma/{self.header}") if self.header else _is_kernel(file)

    def is_near(self, chain: Chain) -> bool:
        """Whether a place is within three lines of it: itself, or, where it is inlined, in the function whose calls
        lead to both."""
        if any(self._is_here(file) and _distance(line, self.lines) <= NEAR for file, line in chain):
            return True
        return any(_meet_near(chain, mine) for mine in self.chains)


def _distance(line: int, lines: tuple[int, int]) -> int:
    return min(abs(line - each) for each in lines)


def _meet_near(one: Chain, other: Chain) -> bool:
    """Two chains, from the kernel inwards: whether they part within three lines of one function.

    A header that calls the kernel back, in_roles() say, is where its roles part, and where neither statement is.
    """
    for depth, (mine, theirs) in enumerate(zip(reversed(one), reversed(other), strict=False), 1):
        (file, line), (other_file, other_line) = mine, theirs
        if (_name(file), line) != (_name(other_file), other_line):
            inner = (*one[: len(one) - depth], *other[: len(other) - depth])
            calls_back = not _is_kernel(file) and any(_is_kernel(each) for each, _ in inner)
            return _name(file) == _name(other_file) and abs(line - other_line) <= NEAR and not calls_back
    return True


def _is_kernel(file: str) -> bool:
    return file.endswith(".cu")


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def wanted_of(mutator: str, culprit: Culprit) -> Callable[[dict], bool]:
    """Whether a finding is of a kind that is right for a mutator, and near."""
    return lambda finding: finding["kind"] in EXPECTED[mutator] and any(map(culprit.is_near, finding["places"]))


def outcome_of(found: dict, mutator: str, memory: Sequence[str], wanted: Callable[[dict], bool]) -> dict:
    """The outcome in a word, and the finding that it rests on."""
    if found["outcome"] != "launched":
        return {key: found[key] for key in ("outcome", "error") if key in found}
    findings = found["findings"]
    right = [finding for finding in findings if wanted(finding)]
    of_kind = [finding for finding in findings if finding["kind"] in EXPECTED[mutator]]
    if findings:
        first = (right or of_kind or findings)[0]
        outcome = FOUND if right else FAR if of_kind else "another kind"
        return {"outcome": outcome, **{key: first[key] for key in ("kind", "severity", "schedule")},
                "places": first["places"] if outcome != FOUND else [], "message": first["message"][:200]}  # fmt: skip
    same = [now == before for now, before in zip(found["memory"], memory, strict=False)]  # it may have ended sooner
    changes_values = mutator in KEEPS_ORDER and not any(same)
    return {"outcome": "values" if changes_values else "silent", "memory": "same" if all(same) else "other"}


def judged(row: dict, reasons: Mapping[str, tuple[str, str]]) -> str:
    """Found, equivalent, values alone or missed; what was found is found, whatever was said of it."""
    if row["outcome"] == FOUND:
        return FOUND
    by_itself = {"identical SASS": EQUIVALENT, "values": VALUES}
    verdict, _ = reasons.get(row["id"], (by_itself.get(row["outcome"], MISSED), ""))
    return verdict


def share(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> tuple[int, int]:
    """How many are found, of how many that are not equivalent and do not change values alone."""
    counts = Counter(judged(row, reasons) for row in rows)
    return counts[FOUND], counts[FOUND] + counts[MISSED]


def far(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> int:
    """Count the missed mutants with a finding of a right kind at a distant line."""
    return sum(row["outcome"] == FAR and judged(row, reasons) == MISSED for row in rows)


def summary(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> str:
    """How many of what, and the share that is found of those that could be."""
    outcomes = Counter(row["outcome"] for row in rows)
    counts = Counter(judged(row, reasons) for row in rows)
    found, asked = share(rows, reasons)
    return "\n".join(
        [
            f"{len(rows)} mutants: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.most_common())}",
            f"{counts[EQUIVALENT]} equivalent, {counts[VALUES]} change values alone; "
            f"of the other {asked} found: {found}, {found / max(asked, 1):.1%}",
        ]
    )
