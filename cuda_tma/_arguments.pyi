from typing_extensions import disjoint_base

from ._dlpack import ExportedTensor
from .options import TensorMapOptions
from .params import TiledParams

@disjoint_base
class Compilable: ...

def tiled_params(tensor: ExportedTensor, options: TensorMapOptions) -> TiledParams: ...
