import numpy as np
from typing_extensions import disjoint_base

@disjoint_base
class TimedStamps:
    stamps: np.ndarray
    whens: np.ndarray
    sites: np.ndarray
    def __init__(self, places: int, units: int) -> None: ...
    def touch(
        self,
        first: np.ndarray,
        each: int,
        lanes: np.ndarray,
        warps: np.ndarray,
        visible: int,
        threads: int,
        started: np.ndarray,
        who: np.ndarray,
        now: int,
        place: int,
        site: int,
    ) -> int: ...
    def operate(
        self,
        first: np.ndarray,
        each: int,
        clock: np.ndarray,
        visible: int,
        fenced: bool,
        threads: int,
        started: int,
        place: int,
        stamp: int,
        when: int,
        site: int,
    ) -> bool: ...
