"""The outcomes of mutants.

An outcome states whether a finding has a right kind, and is near the change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_mutators import EXPECTED, KEEPS_ORDER

NEAR = 3  # A finding within three lines of the mutation counts as near.
FOUND, FAR, EQUIVALENT, VALUES, MISSED = "found", "far away", "equivalent", "values", "missed"
Frame = tuple[str, int]  # A frame consists of a file and a line.
# A chain contains the place of a statement, and the places of the calls through which it was inlined.
Chain = Sequence[Frame]


@dataclass(frozen=True)
class Culprit:
    """The changed code, which is a range of lines with the calls that lead to it from the kernel.

    Attributes
    ----------
    header : str
        The name of the header, or an empty string for the kernel.
    lines : (int, int)
        The first and the last line.
    chains : frozenset
        The calls to each instruction of these lines, in the kernel without the fault.
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
        """Return whether a place is within three lines of the change, directly or in a function whose calls lead to
        both.
        """
        if any(self._is_here(file) and _distance(line, self.lines) <= NEAR for file, line in chain):
            return True
        return any(_meet_near(chain, mine) for mine in self.chains)


def _distance(line: int, lines: tuple[int, int]) -> int:
    return min(abs(line - each) for each in lines)


def _meet_near(one: Chain, other: Chain) -> bool:
    """Return whether two chains of calls, from the kernel inward, diverge within three lines of one function. If a
    header calls the kernel back, as in_roles() does, the chains of two roles diverge at a place that contains neither
    statement.
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
    """Return a function that tests whether a finding is near, and has a right kind for a mutator."""
    return lambda finding: finding["kind"] in EXPECTED[mutator] and any(map(culprit.is_near, finding["places"]))


def outcome_of(found: dict, mutator: str, memory: Sequence[str], wanted: Callable[[dict], bool]) -> dict:
    """Return the outcome as one word, and the finding that determines the outcome."""
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
    # The lists may differ in length, because a launch may have ended early.
    same = [now == before for now, before in zip(found["memory"], memory, strict=False)]
    changes_values = mutator in KEEPS_ORDER and not any(same)
    return {"outcome": "values" if changes_values else "silent", "memory": "same" if all(same) else "other"}


def judged(row: dict, reasons: Mapping[str, tuple[str, str]]) -> str:
    """Return the verdict: found, equivalent, values only or missed. For a found mutant, the reasons do not matter."""
    if row["outcome"] == FOUND:
        return FOUND
    by_itself = {"identical SASS": EQUIVALENT, "values": VALUES}
    verdict, _ = reasons.get(row["id"], (by_itself.get(row["outcome"], MISSED), ""))
    return verdict


def share(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> tuple[int, int]:
    """Return the number of found mutants, and the number of mutants that are not equivalent and change more than
    values.
    """
    counts = Counter(judged(row, reasons) for row in rows)
    return counts[FOUND], counts[FOUND] + counts[MISSED]


def far(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> int:
    """Return the number of missed mutants with a finding of a right kind at a distant line."""
    return sum(row["outcome"] == FAR and judged(row, reasons) == MISSED for row in rows)


def summary(rows: Sequence[dict], reasons: Mapping[str, tuple[str, str]]) -> str:
    """Return the counts as text, and the share of found mutants among the mutants that can be found."""
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
