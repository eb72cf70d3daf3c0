import numpy as np
from typing_extensions import disjoint_base

@disjoint_base
class ClockRows:
    def __init__(
        self, rows: np.ndarray, warps: np.ndarray, started: np.ndarray, visible: int, threads: int
    ) -> None: ...

@disjoint_base
class Stamps:
    values: np.ndarray
    notes: np.ndarray
    moments: np.ndarray
    used: int
    def __init__(self, values: np.ndarray, notes: np.ndarray, moments: np.ndarray | None = None) -> None: ...
    def late(
        self,
        places: int,
        first: np.ndarray,
        each: int,
        lanes: np.ndarray,
        warps: np.ndarray,
        who: np.ndarray,
        strong: bool | int,
    ) -> int: ...
    def touch(
        self,
        positions: np.ndarray,
        each: int,
        clocks: ClockRows,
        who: np.ndarray,
        strong: bool | int,
        writes: bool,
        reads: bool,
        place: int,
        note: int,
        now: int = 0,
        offset: int = 0,
        shift: int = 0,
        released: bool = False,
    ) -> int: ...
    def follow(
        self,
        places: int,
        positions: np.ndarray,
        each: int,
        clocks: ClockRows,
        who: np.ndarray,
        released: bool,
        offset: int,
        shift: int,
    ) -> bool: ...
    def operate(
        self,
        first: np.ndarray,
        each: int,
        clock: np.ndarray,
        row_of_writes: int,
        row_of_reads: int,
        other_row: int,
        strong: bool | int,
        place: int,
        reads_written: bool,
        stamp: int,
        note: int,
        moment: int = 0,
        started: int = 0,
        threads: int = 0,
    ) -> bool: ...
    def put(self, places: np.ndarray, first: np.ndarray, each: int, stamps: np.ndarray, note: int) -> None: ...
    def clear(self, places: int, first: np.ndarray, each: int) -> None: ...
