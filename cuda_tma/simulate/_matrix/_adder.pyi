import numpy as np

def add_to_rows(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, least: tuple[int, ...], fraction_bits: int, kept_bits: int
) -> None: ...
def add_to_fragments(
    a: np.ndarray,
    b: np.ndarray,
    b_of: np.ndarray,
    registers: np.ndarray,
    rows: np.ndarray,
    lanes: np.ndarray,
    with_c: bool,
    least: tuple[int, ...],
    fraction_bits: int,
    kept_bits: int,
) -> None: ...
