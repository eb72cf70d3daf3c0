"""The activity of a launch over time, for its timeline, from an observer (``simulate/_warps/observe.py``)."""

from .run import traced

__all__ = ["traced"]
