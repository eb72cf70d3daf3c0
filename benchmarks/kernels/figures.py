"""The measurements of kernels, and the tables of the measurements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

_DECIMALS = {"TB/s": 2, "TFLOP/s": 0}


@dataclass(frozen=True)
class Figure:
    """The times of a kernel and a rival for one case, in one regime and several processes.

    Attributes
    ----------
    kernel : str
        The name of the example.
    case : str
        The problem that the kernel computes.
    rival : str
    ours_ms, rival_ms : tuple of float
        The median times by the GPU's own clock, one for each process.
    regime : str
        The way of timing, which is a function of :mod:`.regimes`.
    flops : int
        The number of floating-point operations of the problem, or 0 if the kernel only moves data.
    moved_bytes : int
        The smallest number of bytes to move, which counts every input and every output once.
    clock_mhz, power_w, temperature_c : tuple of float
        The state of the GPU during the run, or 0 if it was not observed.
    error : str
        The reason why the figures are missing. All other fields are then empty.

    Examples
    --------
    >>> product = Figure("gemm", "8192 cubed", "torch.matmul", (2.0,), (1.5,), "burst", 2 * 8192**3, 6 * 8192**2)
    >>> round(product.speed), product.unit, product.ratio, round(product.intensity)
    (550, 'TFLOP/s', 0.75, 2731)
    >>> Figure("copy", "1 GiB", "cuMemcpyDtoD", (0.5,), (0.5,), "in turns", 0, 2 << 30).rival_speed
    4.294967296
    """

    kernel: str
    case: str = ""
    rival: str = ""
    ours_ms: tuple[float, ...] = ()
    rival_ms: tuple[float, ...] = ()
    regime: str = ""
    flops: int = 0
    moved_bytes: int = 0
    clock_mhz: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    temperature_c: tuple[float, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, values: dict) -> Figure:
        """Make a figure from JSON values, in which tuples are lists."""
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    @property
    def unit(self) -> str:
        """Return the unit of both speeds in the figure."""
        return "TFLOP/s" if self.flops else "TB/s"

    @property
    def speed(self) -> float:
        return self._per_ms / statistics.median(self.ours_ms)

    @property
    def rival_speed(self) -> float:
        return self._per_ms / statistics.median(self.rival_ms)

    @property
    def ratios(self) -> list[float]:
        """Return the speed of the example divided by that of the rival, in each process."""
        return [rival / ours for ours, rival in zip(self.ours_ms, self.rival_ms, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def intensity(self) -> float:
        """Return the number of operations for each byte that must move."""
        return self.flops / self.moved_bytes

    @property
    def _per_ms(self) -> float:
        """Return the amount of work that takes a millisecond at one `unit`."""
        return (self.flops or self.moved_bytes) / 1e9


_BY_PROCESS = ("ours_ms", "rival_ms", "clock_mhz", "power_w", "temperature_c")


def together(processes: Sequence[Sequence[Figure]]) -> list[Figure]:
    """Merge the figures of several processes into one list, in the order of the first process. A failure in any process
    appears once.

    >>> one, other = (Figure("gemm", "small", "cuBLAS", (ms,), (2.0,), "burst", 8, 8) for ms in (1.0, 4.0))
    >>> together([[one], [other]])[0].ratios
    [2.0, 0.5]
    >>> [figure.error for figure in together([[one], [Figure("gemm", error="wrong")]])]
    ['', 'wrong']
    """
    found: dict[tuple[str, ...], Figure] = {}
    for figure in (figure for figures in processes for figure in figures):
        key = figure.kernel, figure.case, figure.rival, figure.regime, figure.error
        before = found.get(key)
        if before is None or figure.error:
            found[key] = figure
        else:
            found[key] = replace(
                before, **{name: getattr(before, name) + getattr(figure, name) for name in _BY_PROCESS}
            )
    return list(found.values())


@dataclass(frozen=True)
class Figures:
    """The figures that one table contains."""

    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = field(default=())

    @property
    def measured(self) -> list[Figure]:
        return [figure for figure in self.figures if not figure.error]


def summary(figures: Sequence[Figure]) -> list[str]:
    """Return a sentence for each kernel, regime and rival with several cases.

    >>> some = [Figure("gemm", case, "cuBLAS", (1.0,), (ms,), "burst", 8, 8) for case, ms in (("a", 4.0), ("b", 1.0))]
    >>> summary(some)
    ['`gemm`, burst, has 200.0% of the speed of cuBLAS (geometric mean of 2 cases; least 100.0%, greatest 400.0%).']
    """
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for figure in figures:
        if not figure.error:
            ratios.setdefault((figure.kernel, figure.rival, figure.regime), []).append(figure.ratio)
    return [
        f"`{kernel}`, {regime}, has {statistics.geometric_mean(some):.1%} of the speed of {rival} "
        f"(geometric mean of {len(some)} cases; least {min(some):.1%}, greatest {max(some):.1%})."
        for (kernel, rival, regime), some in ratios.items()
        if len(some) > 1
    ]


def markdown(table: Figures) -> str:
    """Return the figures as a Markdown table."""
    rows = [
        ["kernel", "case", "regime", "ours", "rival's", "", "rival", "ours / rival's", "least to greatest", "GPU"],
        ["---"] * 3 + ["---:"] * 2 + ["---"] * 2 + ["---:"] * 2 + ["---"],
    ]
    rows += [_cells(figure) for figure in table.figures]
    lines = [f"## {table.title}", "", *("| " + " | ".join(cells) + " |" for cells in rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]) + "\n"


def _cells(figure: Figure) -> list[str]:
    name = f"`{figure.kernel}`"
    if figure.error:
        return [name, figure.error.replace("|", "\\|"), *[""] * 8]
    speeds = [f"{speed:.{_DECIMALS[figure.unit]}f}" for speed in (figure.speed, figure.rival_speed)]
    spread = f"{min(figure.ratios):.1%} to {max(figure.ratios):.1%}"
    described = [name, figure.case, figure.regime, *speeds, figure.unit, figure.rival]
    return [*described, f"{figure.ratio:.1%}", spread, _state(figure)]


def _state(figure: Figure) -> str:
    """Return the GPU's clock, power and temperature during the run, if they were observed."""
    seen = (figure.clock_mhz, "MHz"), (figure.power_w, "W"), (figure.temperature_c, "°C")
    return ", ".join(f"{statistics.median(values):.0f} {unit}" for values, unit in seen if any(values))
