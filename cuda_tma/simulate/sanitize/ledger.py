"""Findings as they are gathered: one for each cause, with a count."""

from __future__ import annotations

from dataclasses import replace

from ..findings import Finding
from ..ptx import Instruction

__all__ = ["Ledger"]


class Ledger:
    """Findings by kind and by the statements that they are about."""

    def __init__(self) -> None:
        self._found: dict[tuple, Finding] = {}
        self._counts: dict[tuple, int] = {}
        self._instructions: list[Instruction] = []
        self._sites: dict[int, int] = {}

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

    def known(self, *key: object) -> bool:
        """Count once more what has been said; False if it has not."""
        if key not in self._found:
            return False
        self._counts[key] += 1
        return True

    def add(self, key: tuple, finding: Finding) -> None:
        """Say something for the first time; what has the same key is the same cause."""
        self._found[key], self._counts[key] = finding, 1

    def findings(self) -> tuple[Finding, ...]:
        """In the order in which they were found; copies of a statement (unrolled loops, inlined twice) are one."""
        merged: dict[tuple, Finding] = {}
        for key, finding in self._found.items():
            cause = (finding.kind, finding.severity, finding.source, finding.other) if finding.source else key
            first = merged.get(cause, replace(finding, count=0))
            merged[cause] = replace(first, count=first.count + self._counts[key])
        return tuple(merged.values())
