"""The timeline of a launch, which an observer records (``simulate/_warps/observe.py``)."""

from .run import traced

__all__ = ["traced"]
