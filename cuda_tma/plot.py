"""Pictures of tiles, boxes and banks: they live in the room of what people look at, and are imported from here."""

from ._show.plot import *  # noqa: F403
from ._show.plot import __all__ as __all__
