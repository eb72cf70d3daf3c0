"""The operations of tensor cores as functions of arrays: fragments, descriptors, wgmma, ldmatrix and stmatrix."""

from .descriptor import Descriptor, piece_addresses
from .moves import MatrixMove, matrix_move_of
from .wgmma import Wgmma, wgmma_of

__all__ = ["Descriptor", "MatrixMove", "Wgmma", "matrix_move_of", "piece_addresses", "wgmma_of"]
