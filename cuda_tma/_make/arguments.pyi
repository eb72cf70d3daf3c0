from collections.abc import Iterable, Mapping
from typing import overload

from typing_extensions import disjoint_base

from .._read.dlpack import ExportedTensor
from ..enums import TensorMapDataType
from ..options import Options, TensorMapOptions
from ..params import Params, TiledParams

@disjoint_base
class CompiledOptions: ...

@disjoint_base
class Compilable: ...

def fill_tables(data_types: Iterable[TensorMapDataType], dtypes: Mapping[tuple[int, int, int], str]) -> None: ...
@overload
def tiled_params(tensor: ExportedTensor, options: TensorMapOptions) -> TiledParams: ...
@overload
def tiled_params(tensor: ExportedTensor, options: Options) -> Params: ...
