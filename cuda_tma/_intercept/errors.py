"""The errors that adapters raise for features that the simulated GPU does not support."""

from __future__ import annotations

__all__ = ["NotSimulated"]


class NotSimulated(RuntimeError):
    """The error for a script that uses a feature which needs a GPU. Without a GPU, the script's results would be wrong.

    Parameters
    ----------
    feature : str
        The name of the feature in the script.
    reason : str
    remedy : str
    """

    def __init__(self, feature: str, reason: str, remedy: str):
        super().__init__(f"{feature} needs a GPU: {reason}. Remedy: {remedy}")
        self.feature = feature
