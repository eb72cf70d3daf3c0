"""The functions that draw pictures of tiles, boxes and banks."""

from ._show.plot import Division, banks, box, divided, explorer, tile, tiles

__all__ = ["Division", "banks", "box", "divided", "explorer", "tile", "tiles"]
