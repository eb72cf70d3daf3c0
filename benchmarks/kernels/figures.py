"""What was measured of a kernel, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_DECIMALS = {"TB/s": 2, "TFLOP/s": 0}


@dataclass(frozen=True)
class Figure:
    """One case of a kernel, and of one rival in the same run.

    Attributes
    ----------
    kernel : str
        The example's name.
    case : str
        What was computed.
    rival : str
    ours_ms, rival_ms : float
        Medians, by the GPU's own clock.
    flops : int
        The floating-point operations that the problem needs; 0 where data is only moved.
    moved_bytes : int
        The least that must move: every input read once, every output written once.
    error : str
        Why there are no figures; then all others are empty.

    Examples
    --------
    >>> product = Figure("gemm", "8192 x 8192 x 8192", "torch.matmul", 2.0, 1.5, 2 * 8192**3, 6 * 8192**2)
    >>> round(product.speed), product.unit, product.ratio, round(product.intensity)
    (550, 'TFLOP/s', 0.75, 2731)
    >>> Figure("copy", "1 GiB", "cuMemcpyDtoD", 0.5, 0.5, 0, 2 << 30).rival_speed
    4.294967296
    """

    kernel: str
    case: str = ""
    rival: str = ""
    ours_ms: float = 0
    rival_ms: float = 0
    flops: int = 0
    moved_bytes: int = 0
    error: str = ""

    @property
    def unit(self) -> str:
        """Of both speeds."""
        return "TFLOP/s" if self.flops else "TB/s"

    @property
    def speed(self) -> float:
        return self._per_ms / self.ours_ms

    @property
    def rival_speed(self) -> float:
        return self._per_ms / self.rival_ms

    @property
    def ratio(self) -> float:
        """Our speed over the rival's."""
        return self.rival_ms / self.ours_ms

    @property
    def intensity(self) -> float:
        """Operations for each byte that must move."""
        return self.flops / self.moved_bytes

    @property
    def _per_ms(self) -> float:
        """What takes a millisecond at one `unit`, counted in such pieces."""
        return (self.flops or self.moved_bytes) / 1e9


@dataclass(frozen=True)
class Figures:
    """Figures that are shown together."""

    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = field(default=())

    @property
    def measured(self) -> list[Figure]:
        return [figure for figure in self.figures if not figure.error]


def markdown(table: Figures) -> str:
    """The figures as a Markdown table."""
    rows = [
        ["kernel", "case", "ours", "rival's", "", "rival", "ours / rival's"],
        ["---"] * 2 + ["---:"] * 2 + ["---"] * 2 + ["---:"],
    ]
    rows += [_cells(figure) for figure in table.figures]
    lines = [f"## {table.title}", "", *("| " + " | ".join(cells) + " |" for cells in rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]) + "\n"


def _cells(figure: Figure) -> list[str]:
    name = f"`{figure.kernel}`"
    if figure.error:
        return [name, figure.error.replace("|", "\\|"), *[""] * 5]
    speeds = [f"{speed:.{_DECIMALS[figure.unit]}f}" for speed in (figure.speed, figure.rival_speed)]
    return [name, figure.case, *speeds, figure.unit, figure.rival, f"{figure.ratio:.1%}"]
