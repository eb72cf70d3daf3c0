from typing_extensions import disjoint_base

from ._arguments import CompiledOptions
from .options import TensorMapIm2colOptions, TensorMapIm2colWideOptions

@disjoint_base
class CompiledPixels(CompiledOptions): ...

@disjoint_base
class CompiledIm2col(CompiledPixels): ...

@disjoint_base
class CompiledIm2colWide(CompiledPixels): ...

def compile_pixels(options: TensorMapIm2colOptions | TensorMapIm2colWideOptions) -> CompiledPixels: ...
