"""The collector of findings, which keeps one finding with a count for each cause."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._copies.parts import Parts
from ..._findings import Finding, message_of
from ..._ptx import Instruction
from .violation import Violation

__all__ = ["FindingCollector", "UndefinedRead"]


def _replaces(severity: str, held: str) -> bool:
    """Return whether a finding replaces a finding of severity `held`: an error replaces advice."""
    return severity == "error" and held == "advice"


class UndefinedRead(NamedTuple):
    """The undefined values that one instruction reads.

    Attributes
    ----------
    instruction : Instruction
    offsets : numpy.ndarray of bool
        Whether the instruction reads each byte of the shared memory of a CTA while the byte is undefined. The array is
        empty for a shuffle.
    local_offsets : set of int
        The undefined bytes that the instruction reads in the local memory of a thread.
    is_of_columns : bool
        Whether the instruction reads undefined columns of tensor memory.
    """

    instruction: Instruction
    offsets: np.ndarray
    local_offsets: set[int]
    is_of_columns: bool = False


class FindingCollector:
    """The findings of a launch; violations of one kind at the same statements are one finding."""

    def __init__(self) -> None:
        self._parts: Parts | None = None
        self._found: dict[tuple, Finding] = {}
        self._counts: dict[tuple, int] = {}
        self._instructions: list[Instruction] = []
        self._sites: dict[int, int] = {}
        self.undefined: dict[tuple, UndefinedRead] = {}  # The dictionary maps the key of a finding to its entry.
        self.racing_reads: dict[tuple[Instruction, Instruction], list[tuple]] = {}

    def begin(self, parts: Parts) -> None:
        """Set the parts of the machine, from which the messages take the names of threads and memory."""
        self._parts = parts

    def site(self, instruction: Instruction) -> int:
        """Return the number of an instruction.

        An instruction exists as long as its kernel, so the ``id`` of the instruction is unique.
        """
        number = self._sites.get(id(instruction))
        if number is None:
            number = self._sites[id(instruction)] = len(self._instructions)
            self._instructions.append(instruction)
        return number

    def instruction(self, site: int) -> Instruction:
        """Return the instruction that has a given number."""
        return self._instructions[site]

    def report(self, violation: Violation) -> None:
        """Add a violation, or increment the count of its cause; an error replaces advice of the same cause."""
        key = (violation.KIND, *violation.cause)
        held, severity = self._found.get(key), violation.severity
        if held is not None and not _replaces(severity, held.severity):
            self._counts[key] += held.severity == severity
            return
        if self._parts is None:
            raise RuntimeError("a violation was added before the launch began")
        self._found[key], self._counts[key] = violation.finding(self._parts), 1
        if (pair := violation.racing_read) is not None:
            self.racing_reads.setdefault(pair, []).append(key)

    def excuse(self, read: Instruction, write: Instruction, reason: str) -> None:
        """Convert the races of a load and a write to advice, and add the reason to the messages."""
        for key in self.racing_reads[read, write]:
            self._decide(key, "advice", reason)

    def undecided(self) -> dict[tuple, UndefinedRead]:
        """Return the reads of undefined values, without instructions that already have an error."""
        named = {each for key, held in self._found.items() if held.severity == "error" for each in key[1:]}
        return {key: read for key, read in self.undefined.items() if id(read.instruction) not in named}

    def escalate(self, key: tuple, reason: str) -> None:
        """Convert advice to an error, and add the reason to the message."""
        self._decide(key, "error", reason)

    def _decide(self, key: tuple, severity: str, reason: str) -> None:
        held = self._found[key]
        message = message_of(f"{held.happened}; {reason}", held.rule, held.remedy)
        self._found[key] = replace(held, severity=severity, message=message)

    def findings(self) -> tuple[Finding, ...]:
        """Return one finding for each cause in the order of detection.

        Findings at several copies of a source line in the PTX have one cause.
        """
        merged: dict[tuple, Finding] = {}
        for key, finding in self._found.items():
            cause = (finding.kind, finding.source, finding.other) if finding.source else key
            first = merged.get(cause)
            if first is None or _replaces(finding.severity, first.severity):
                merged[cause] = replace(finding, count=self._counts[key])
            elif first.severity == finding.severity:
                merged[cause] = replace(first, count=first.count + self._counts[key])
        return tuple(merged.values())
