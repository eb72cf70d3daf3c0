"""The option ``--baseline FILE``, which omits the findings that an earlier report already contains.

Each finding has a fingerprint, which is a hash of its kind, its kernel, and the text of its lines. The fingerprint does
not contain line numbers, so an edit elsewhere in the file does not make a finding new.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._budget import BASELINE_BYTES
from .._files import shown_path, text_of_file
from .excerpts import statements
from .exit_status import Misuse
from .outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._intercept.launched import Launched
    from ..simulate import Finding, Place
    from .sources import Sources

__all__ = ["FINGERPRINT", "fingerprint", "read_baseline", "without_known"]

# The key "cudaTma/v1" in SARIF needs a new number if the formula of the fingerprint changes.
FINGERPRINT = "cudaTma/v1"
_HEXADECIMAL = re.compile("[0-9a-f]{32}")


def fingerprint(launch: Launched, finding: Finding, sources: Sources) -> str:
    """Return the fingerprint of a finding, 32 hexadecimal digits."""
    places = ((finding.source, finding.ptx_line), (finding.other, finding.other_ptx_line))
    parts = [finding.kind, launch.plain_kernel, *(_written(*place, sources) for place in places)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _written(places: Sequence[Place], ptx_line: int, sources: Sources) -> str:
    """Return the text and the file of a statement; if the text is not available, return the line number."""
    own, _ = statements(places, sources.generated)
    file, number = (own[0].file, own[0].line) if own else (str(sources.file), ptx_line)
    lines = sources.lines(file)
    text = "".join(lines[number - 1].split()) if 0 < number <= len(lines) else str(number)
    return f"{shown_path(file)}:{text}"


def read_baseline(path: str) -> frozenset[str]:
    """Return the fingerprints of the findings in a report of ``--sarif`` or ``--json``.

    Raises
    ------
    Misuse
        If the file cannot be read, or is not a report of ``--sarif`` or ``--json``.
    """
    try:
        report = json.loads(text_of_file(path, BASELINE_BYTES))
        return frozenset(filter(_HEXADECIMAL.fullmatch, _fingerprints(report)))
    except OSError as error:
        raise Misuse(f"--baseline {path} cannot be read: {error.strerror or error}") from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise Misuse(
            f"--baseline {path} does not contain a SARIF report; write one with cuda-tma sanitize --sarif FILE"
        ) from None


def _fingerprints(report: Any) -> Iterator[str]:
    if "runs" in report:
        for run in report["runs"]:
            yield from (result["partialFingerprints"][FINGERPRINT] for result in run["results"])
    else:
        for launch in report["launches"]:
            for finding in (*launch["findings"], *launch.get("suppressed", ())):
                yield finding["fingerprint"]


def without_known(outcome: Outcome, known: frozenset[str], sources_of: Callable[[Launched], Sources]) -> Outcome:
    """Return an outcome with only new findings, and the number of known findings that the outcome omits."""
    left_out: set[str] = set()

    def new(launch: Launched) -> Launched:
        if launch.report is None or not launch.report.findings:
            return launch
        sources, findings = sources_of(launch), launch.report.findings
        keys = [fingerprint(launch, finding, sources) for finding in findings]
        left_out.update(known.intersection(keys))
        kept = tuple(finding for finding, key in zip(findings, keys, strict=True) if key not in known)
        return replace(launch, report=replace(launch.report, findings=kept))

    launches = tuple(map(new, outcome.launches))
    return replace(outcome, launches=launches, known=len(left_out))
