"""What a launch does over time, for its timeline: it watches through ``simulate/_warps/observe.py``."""

from .run import traced

__all__ = ["traced"]
