"""Tables of parameters in notebooks: they live in the room of what people look at, and are imported from here."""

from .show.html import *  # noqa: F403
from .show.html import __all__ as __all__
