import numpy as np
from typing_extensions import disjoint_base

@disjoint_base
class Stamps:
    values: np.ndarray
    notes: np.ndarray
    def __init__(self, places: int, units: int) -> None: ...
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
    def put(self, places: np.ndarray, first: np.ndarray, each: int, stamps: np.ndarray, note: int) -> None: ...
    def clear(self, places: int, first: np.ndarray, each: int) -> None: ...
