from typing import overload

from ._dlpack import ExportedTensor
from .options import Options, TensorMapOptions
from .params import Params, TiledParams

@overload
def tiled_params(tensor: ExportedTensor, options: TensorMapOptions) -> TiledParams: ...
@overload
def tiled_params(tensor: ExportedTensor, options: Options) -> Params: ...
