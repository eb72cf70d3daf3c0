"""Runs at the start of every Python process below ``cuda-tma sanitize``, whose ``PYTHONPATH`` begins with this folder.

Python imports it as ``sitecustomize``. It imports nothing of cuda_tma until the program imports a runtime that has an
adapter. The user's own ``sitecustomize`` runs after it.
"""

import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder

VARIABLE = "CUDA_TMA_SESSION"  # the folder of the session, which has its options and its journals
RUNTIMES = ("torch", "torch.utils.cpp_extension", "triton", "tilelang", "cuda_tma")  # modules that have an adapter


class Hook(MetaPathFinder):
    """Calls `loaded` with the name of a module of `names` as soon as that module has been imported."""

    def __init__(self, names, loaded):
        self._names, self._loaded = set(names), loaded

    def find_spec(self, name, path=None, target=None):
        """Find the module as the other finders do, and give it a loader that calls back."""
        if name not in self._names:
            return None
        self._names.discard(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, lambda: self._loaded(name))
        return spec


class _Calling(Loader):
    """A loader that calls a function after the module has been executed."""

    def __init__(self, loader, call):
        self._loader, self._call = loader, call

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._call()


def after_import(names, loaded):
    """Call `loaded` with each name: now if the module is there, else after its first import."""
    hook = Hook([name for name in names if name not in sys.modules], loaded)
    sys.meta_path.insert(0, hook)
    for name in names:
        if name in sys.modules:
            loaded(name)


def _loaded(name):
    from cuda_tma._intercept import adapters

    adapters.loaded(name)


def _run_next():
    """Run the ``sitecustomize`` that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if os.environ.get(VARIABLE):
        after_import(RUNTIMES, _loaded)
    _run_next()
