"""The names that the command and the processes of a program share, and a hook that runs after imports.

The file ``sitecustomize.py`` imports this module before the program runs. This module therefore imports only the
standard library.
"""

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder

ALIVE = "alive"  # Each process holds a shared lock on the file `alive` in the folder of the session.
UNREADY = "unready"  # The file `unready` in the folder of the session lists Python interpreters without cuda_tma.
ON_GPU = "CUDA_TMA_ON_GPU"  # If launches run on a GPU, both environment variables contain the folder of the session.
# The variable CUDA_TMA_SESSION contains the path of the folder with the options and the journals of the session.
VARIABLE = "CUDA_TMA_SESSION"
# RUNTIMES lists the modules that have an adapter.
RUNTIMES = (
    "torch",
    "torch.utils.cpp_extension",
    "triton",
    "tilelang",
    "numba.cuda.dispatcher",
    "cupy_backends.cuda.api.runtime",
    "cupy.cuda.thrust",
    "cutlass._mlir._mlir_libs",
    "cutlass.cute.runtime",
    "cuda_tma",
)


class Hook(MetaPathFinder):
    """An import hook that calls `loaded` after the import of a module of `names`, with the module's name."""

    def __init__(self, names, loaded):
        self._names, self._loaded = set(names), loaded
        self._sought = set()  # _sought contains names of modules for which the remaining finders are searching.

    def find_spec(self, name, path=None, target=None):
        """Find the module with the other finders. Return it with a loader that calls `loaded`."""
        if name not in self._names or name in self._sought:
            return None
        self._sought.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._sought.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, lambda: self._call(name))
        return spec

    def _call(self, name):
        """Call `loaded` once, because a program may search for a module many times without an import."""
        if name in self._names:
            self._names.discard(name)
            self._loaded(name)


class _Calling(Loader):
    """A loader that calls a function after it has executed the module."""

    def __init__(self, loader, call):
        self._loader, self._call = loader, call

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._call()


def after_import(names, loaded):
    """Call `loaded` with each name of a module, now if the module is imported, or else after its first import."""
    hook = Hook([name for name in names if name not in sys.modules], loaded)
    sys.meta_path.insert(0, hook)
    for name in names:
        if name in sys.modules:
            loaded(name)
