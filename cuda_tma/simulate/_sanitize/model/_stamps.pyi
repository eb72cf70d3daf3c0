import numpy as np
from typing_extensions import disjoint_base

@disjoint_base
class Stamps:
    values: np.ndarray
    notes: np.ndarray
    def __init__(self, values: np.ndarray, notes: np.ndarray) -> None: ...
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
    def operate(
        self,
        first: np.ndarray,
        each: int,
        clock: np.ndarray,
        row: int,
        other_row: int,
        strong: bool | int,
        place: int,
        readers: int,
        stamp: int,
        note: int,
    ) -> bool: ...
    def touch(
        self,
        first: np.ndarray,
        each: int,
        lanes: np.ndarray,
        warps: np.ndarray,
        visible: int,
        threads: int,
        who: np.ndarray,
        strong: bool | int,
        writes: bool,
        reads: bool,
        readers: int,
        note: int,
    ) -> int: ...
    def put(self, places: np.ndarray, first: np.ndarray, each: int, stamps: np.ndarray, note: int) -> None: ...
    def clear(self, places: int, first: np.ndarray, each: int) -> None: ...
