"""The clusters of a grid that have not begun, which the machine starts or ``clusterlaunchcontrol`` cancels."""

from __future__ import annotations

from .geometry import Geometry

__all__ = ["PendingClusters"]


class PendingClusters:
    """A queue of the clusters that have not begun, in the order of the grid.

    Attributes
    ----------
    first : int
        The number of the next cluster; all preceding clusters have begun or were canceled.
    canceled : int
        The number of clusters that were canceled.
    """

    def __init__(self, geometry: Geometry):
        self._geometry = geometry
        self.first = self.canceled = 0

    @property
    def left(self) -> int:
        """The number of clusters that have not begun."""
        return self._geometry.clusters - self.first

    def take(self) -> int:
        """Remove the next cluster, and return its number in the grid."""
        self.first += 1
        return self.first - 1

    def cancel(self) -> tuple[int, int, int] | None:
        """Cancel the next cluster, and return the index of its first CTA; None if no cluster is left."""
        if not self.left:
            return None
        self.canceled += 1
        return self._geometry.first_ctaid(self.take())
