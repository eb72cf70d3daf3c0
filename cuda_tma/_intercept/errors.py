"""The errors of adapters for features that the simulated GPU does not support."""

from __future__ import annotations

__all__ = ["NotSimulated"]


class NotSimulated(RuntimeError):
    """An error for a script that uses a feature which needs a GPU. Without a GPU its results would be wrong.

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
