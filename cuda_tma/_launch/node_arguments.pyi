from cuda.core import Kernel
from cuda.core.graph import KernelNode

def read_node(node: KernelNode | int, kernel: Kernel | None) -> tuple[Kernel, tuple[bytes, ...]]: ...
