from ._dlpack import ExportedTensor
from .options import TensorMapOptions
from .params import TiledParams

def tiled_params(tensor: ExportedTensor, options: TensorMapOptions) -> TiledParams: ...
