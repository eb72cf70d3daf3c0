"""Draw the pictures of ``docs/images/``, which ``docs/pictures.md`` shows. Needs matplotlib."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import TiledParams
from cuda_tma.show import plot

__all__ = ["draw", "pictures"]

BFLOAT16 = TiledParams(
    data_type=T.BFLOAT16,
    global_address=0,
    global_dim=(128, 60),
    global_strides=(256,),
    box_dim=(64, 8),
    element_strides=(1, 1),
    swizzle=S.SWIZZLE_128B,
)
FLOAT32 = TiledParams(
    data_type=T.FLOAT32,
    global_address=0,
    global_dim=(64, 48),
    global_strides=(256,),
    box_dim=(32, 32),
    element_strides=(1, 1),
    swizzle=S.SWIZZLE_128B,
)
STRIDED = TiledParams(
    data_type=T.FLOAT32,
    global_address=0,
    global_dim=(64, 48),
    global_strides=(256,),
    box_dim=(16, 12),
    element_strides=(1, 2),
)
SLICE = TiledParams(
    data_type=T.FLOAT32,
    global_address=0,
    global_dim=(64, 48, 9),
    global_strides=(256, 12288),
    box_dim=(16, 12, 2),
    element_strides=(1, 1, 1),
)


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
