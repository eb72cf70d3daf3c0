"""The common parts of ``tcgen05.mma``, ``tcgen05.cp`` and ``tcgen05.shift``: their pipe and their source matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..._copies.copy import Issue
from ..._copies.engine import Operation
from ..._ptx import Instruction
from ..._tensor_memory.descriptor import pieces
from ..._tensor_memory.pairs import pair_of
from ..._warps.binder import Binder
from ..._warps.faults import Fault
from ..._warps.spaces import SHARED_START
from ..._warps.tensor_events import OperationIssued, Touch

__all__ = ["SharedMatrix", "begin", "ctas_of", "ctas_of_group", "pieces_of"]

# NumPy has no integer type of 16 bytes, so complex128 is the type of an item of 16 bytes.
_PIECE = np.dtype(np.complex128)


def ctas_of_group(by: Instruction) -> int:
    """Return the number of CTAs that ``.cta_group`` specifies, 1 or 2."""
    return 2 if "cta_group::2" in by.opcode else 1


def ctas_of(issue: Issue) -> tuple[int, ...]:
    """Return the resident CTAs that an operation uses; the pipe of the first CTA contains the operation."""
    cta = int(issue.parts.geometry.cta_of_lane[issue.lane])
    if ctas_of_group(issue.instruction) == 1:
        return (cta,)
    return pair_of(issue.parts.geometry, cta, np.array([issue.lane]))


def pieces_of(binder: Binder, descriptor: int, rows: int, element_bytes: int = 1, mn_major: bool = False) -> np.ndarray:
    """Return the addresses of the 16-byte pieces of the matrix that a matrix descriptor describes."""
    try:
        return pieces(descriptor, rows, element_bytes, mn_major)
    except ValueError as error:
        raise Fault("fault", f'{error} (PTX ISA, "Shared memory descriptor")') from None
    except NotImplementedError as error:
        raise binder.unsupported(str(error)) from None


class SharedMatrix:
    """A source matrix of an operation, as pieces of 16 bytes in the shared memory of each CTA.

    Parameters
    ----------
    issue : Issue
    offsets : numpy.ndarray
        The shared addresses of the pieces.
    name : str
        The name of the matrix in an error.
    """

    __slots__ = ("_issue", "_offsets")

    def __init__(self, issue: Issue, offsets: np.ndarray, name: str):
        self._issue, self._offsets = issue, offsets
        first, last, stop = int(offsets.min()), int(offsets.max()) + _PIECE.itemsize, issue.parts.memory.shared_stop
        if first < SHARED_START or last > stop:
            raise Fault(
                "out-of-bounds",
                f"tcgen05.{issue.instruction.opcode[1]} reads {name} from byte {first - SHARED_START} to "
                f"{last - 1 - SHARED_START} of shared memory, but the CTA has {stop - SHARED_START} bytes: check the "
                "descriptor",
                issue.lanes,
            )

    def observe(self, cta: int) -> None:
        """Report the read of the matrix in one CTA to the observer."""
        positions = self._offsets.ravel() + cta * self._issue.parts.memory.shared_pitch
        self._issue.observe("read", "shared", positions, _PIECE.itemsize)

    def read(self, cta: int) -> np.ndarray:
        """Return the bytes of the matrix in one CTA as uint8 [..., 16]."""
        memory = self._issue.parts.memory
        items = memory.shared.typed(_PIECE)[(self._offsets + cta * memory.shared_pitch) // _PIECE.itemsize]
        return items.view(np.uint8).reshape(*items.shape, _PIECE.itemsize)


def begin(
    issue: Issue,
    ctas: tuple[int, ...],
    touches: Sequence[Touch],
    sources: Sequence[SharedMatrix],
    run: Callable[[], None],
) -> None:
    """Check the columns of an operation, report its accesses, and add it to the pipe of its first CTA.

    In orders other than ``early``, the operation may complete before a commit.
    """
    parts = issue.parts
    parts.tensor_memory.check_group(issue.instruction, issue.lanes)
    for touch in touches:
        parts.tensor_memory.check(touch.cta, touch.column, touch.columns, issue.instruction, issue.lanes)
    if parts.events.observer is not None:
        issue.mark = parts.events.observer.issue(issue.lane, issue.instruction, "tcgen05")
        for source in sources:
            for cta in ctas:
                source.observe(cta)
        parts.events.tell(OperationIssued(issue.lanes, issue.instruction, touches))

    def guarded() -> None:
        with issue.faults():
            run()

    number = parts.tensor_memory.pipes.issue(ctas[0], issue.lane, guarded)
    if not parts.engine.is_early:
        stage = partial(parts.tensor_memory.pipes.run_until, ctas[0], number)
        parts.engine.submit(Operation([stage], (ctas[0],)))
