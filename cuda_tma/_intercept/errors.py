"""Errors of adapters: a feature of a runtime that the simulated GPU does not have."""

from __future__ import annotations

__all__ = ["NotSimulated"]


class NotSimulated(RuntimeError):
    """A script uses a feature that needs a GPU; without one, its results would be wrong.

    Parameters
    ----------
    feature : str
        The name that the script uses.
    reason : str
    remedy : str
    """

    def __init__(self, feature: str, reason: str, remedy: str):
        super().__init__(f"{feature} needs a GPU: {reason}. Remedy: {remedy}")
        self.feature = feature
