"""Findings as they are gathered: one for each cause, with a count."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._findings import Finding
from ..._ptx import Instruction

__all__ = ["FindingCollector", "UndefinedRead"]


def _replaces(severity: str, held: str) -> bool:
    """Return whether a finding of one severity replaces one of another: an error replaces advice."""
    return severity == "error" and held == "advice"


class UndefinedRead(NamedTuple):
    """What one instruction reads.

    Attributes
    ----------
    instruction : Instruction
    offsets : numpy.ndarray of bool
        Which bytes of the shared memory of a CTA; none of a shuffle.
    local_offsets : set of int
        Which bytes of a thread's local memory.
    """

    instruction: Instruction
    offsets: np.ndarray
    local_offsets: set[int]


class FindingCollector:
    """Findings by kind and by the statements that they are about."""

    def __init__(self) -> None:
        self._found: dict[tuple, Finding] = {}
        self._counts: dict[tuple, int] = {}
        self._instructions: list[Instruction] = []
        self._sites: dict[int, int] = {}
        self.undefined: dict[tuple, UndefinedRead] = {}  # by the keys of their findings
        self.racing_reads: dict[tuple[Instruction, Instruction], list[tuple]] = {}

    def site(self, instruction: Instruction) -> int:
        """A number for an instruction; a kernel keeps its instructions, so that identity is enough."""
        number = self._sites.get(id(instruction))
        if number is None:
            number = self._sites[id(instruction)] = len(self._instructions)
            self._instructions.append(instruction)
        return number

    def instruction(self, site: int) -> Instruction:
        """The one of a number."""
        return self._instructions[site]

    def known(self, kind: str, severity: str, *statements: object) -> bool:
        """Count one more occurrence of a finding that the ledger has; return False if it lacks it.

        An error replaces advice of the same kind on the same statements, so advice does not make an error known.
        """
        key = (kind, *statements)
        held = self._found.get(key)
        if held is None or _replaces(severity, held.severity):
            return False
        self._counts[key] += held.severity == severity
        return True

    def add_racing_read(self, read: Instruction, write: Instruction, key: tuple) -> None:
        """Note that a race, by its key, is between a load of threads and a write of other threads."""
        self.racing_reads.setdefault((read, write), []).append(key)

    def excuse(self, read: Instruction, write: Instruction, reason: str) -> None:
        """Turn the races of a load and a write into advice, for a reason."""
        for key in self.racing_reads[read, write]:
            held = self._found[key]
            message = f"{held.happened}; {reason}. {held.rule}. Remedy: {held.remedy}"
            self._found[key] = replace(held, severity="advice", message=message)

    def undecided(self) -> dict[tuple, UndefinedRead]:
        """Return the reads of undefined values without those of which another error may be the cause."""
        accused = {each for key, held in self._found.items() if held.severity == "error" for each in key[1:]}
        return {key: read for key, read in self.undefined.items() if id(read.instruction) not in accused}

    def accuse(self, key: tuple, reason: str) -> None:
        """Turn advice into an error, for a reason."""
        held = self._found[key]
        message = f"{held.happened}; {reason}. {held.rule}. Remedy: {held.remedy}"
        self._found[key] = replace(held, severity="error", message=message)

    def add(self, key: tuple, finding: Finding) -> None:
        """Add a finding; it replaces advice that has the same key, which is the same cause."""
        self._found[key], self._counts[key] = finding, 1

    def findings(self) -> tuple[Finding, ...]:
        """Return one finding for each cause, in order; unrolled or inlined copies of a statement are one cause."""
        merged: dict[tuple, Finding] = {}
        for key, finding in self._found.items():
            cause = (finding.kind, finding.source, finding.other) if finding.source else key
            first = merged.get(cause)
            if first is None or _replaces(finding.severity, first.severity):
                merged[cause] = replace(finding, count=self._counts[key])
            elif first.severity == finding.severity:
                merged[cause] = replace(first, count=first.count + self._counts[key])
        return tuple(merged.values())
