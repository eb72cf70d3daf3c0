from typing_extensions import disjoint_base

from ..options import TensorMapIm2colOptions, TensorMapIm2colWideOptions
from .arguments import CompiledOptions

@disjoint_base
class CompiledPixels(CompiledOptions): ...

@disjoint_base
class CompiledIm2col(CompiledPixels): ...

@disjoint_base
class CompiledIm2colWide(CompiledPixels): ...

def compile_pixels(options: TensorMapIm2colOptions | TensorMapIm2colWideOptions) -> CompiledPixels: ...
