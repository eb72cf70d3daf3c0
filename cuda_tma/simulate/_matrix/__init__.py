"""The operations of tensor cores as functions of arrays: products, matrix moves, fragments and matrix descriptors."""

from .descriptor import Descriptor, piece_addresses
from .moves import MatrixMove, matrix_move_of
from .wgmma import Wgmma, wgmma_of

__all__ = ["Descriptor", "MatrixMove", "Wgmma", "matrix_move_of", "piece_addresses", "wgmma_of"]
