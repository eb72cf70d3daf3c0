"""The recording of the timeline of a launch by an observer (``simulate/_warps/observe.py``)."""

from .run import traced

__all__ = ["traced"]
