"""Draw the pictures of ``docs/images/``, which ``docs/pictures.md`` shows. Needs matplotlib."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from cuda_tma import TensorSpec, params_of
from cuda_tma.show import plot

__all__ = ["draw", "pictures"]

BFLOAT16 = params_of(TensorSpec((60, 128), "bfloat16"), box_dim=(8, 64), swizzle="128B")
FLOAT32 = params_of(TensorSpec((48, 64), "float32"), box_dim=(32, 32), swizzle="128B")
STRIDED = params_of(TensorSpec((48, 64), "float32"), box_dim=(12, 16), element_strides=(2, 1))
SLICE = params_of(TensorSpec((9, 48, 64), "float32"), box_dim=(2, 12, 16))


def pictures() -> dict[str, Figure]:
    """Every picture by its name."""
    return {
        "tile": plot.tile(BFLOAT16, (64, 54)),
        "banks_column": plot.banks(FLOAT32, "column"),
        "banks_ldmatrix": plot.banks(FLOAT32, "ldmatrix"),
        "box": plot.box(STRIDED, (56, 4)),
        "box_slice": plot.box(SLICE, (-8, 40, 3)),
    }


def draw(folder: Path) -> None:
    """Write every picture as a PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"font.size": 9}):
        for name, figure in pictures().items():
            figure.savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(__file__).parent.parent / "docs" / "images")
