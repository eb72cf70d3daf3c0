from typing import overload

from typing_extensions import disjoint_base

from .._options import Options, TensorMapOptions
from .._read.dlpack import ExportedTensor
from ..params import Params, TiledParams

@disjoint_base
class CompiledOptions: ...

@disjoint_base
class CompiledPixels(CompiledOptions): ...

@disjoint_base
class CompiledIm2col(CompiledPixels): ...

@disjoint_base
class CompiledIm2colWide(CompiledPixels): ...

@overload
def tiled_params(tensor: ExportedTensor, options: TensorMapOptions) -> TiledParams: ...
@overload
def tiled_params(tensor: ExportedTensor, options: Options) -> Params: ...
