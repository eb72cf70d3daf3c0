"""The start of every Python process below ``cuda-tma sanitize``, whose ``PYTHONPATH`` begins with this folder.

Python imports this file as ``sitecustomize``. The file does not import modules of cuda_tma until the program imports a
runtime that has an adapter. The user's own ``sitecustomize`` runs after this file.
"""

import contextlib
import fcntl
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

from cuda_tma_nvrtc import put_in_front
from cuda_tma_redirect import redirect_module
from cuda_tma_startup import ALIVE, ON_GPU, RUNTIMES, UNREADY, VARIABLE, after_import


def _loaded(name):
    try:
        from cuda_tma._intercept import adapters
    except ImportError as error:
        _write(UNREADY, f"{sys.executable} cannot import cuda_tma: {error}\n")
    else:
        adapters.loaded(name)


def _write(name, text):
    """Append a text to a file of the session. The program continues if the call fails."""
    with contextlib.suppress(OSError), open(os.path.join(os.environ[VARIABLE], name), "a") as file:
        file.write(text)


def _run_next():
    """Run the module ``sitecustomize`` that this file hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _begin(folder):
    """Hold a lock until this process and all its forks have ended."""
    _write(ALIVE, ".")
    with contextlib.suppress(OSError):
        fcntl.flock(os.open(os.path.join(folder, ALIVE), os.O_RDONLY), fcntl.LOCK_SH)
    after_import(("cuda.pathfinder",), lambda name: put_in_front(sys.modules[name]))
    after_import(("cuda.bindings._internal.runtime",), lambda name: redirect_module(sys.modules[name]))
    after_import(RUNTIMES, _loaded)


if __name__ == "sitecustomize":
    if os.path.isdir(os.environ.get(VARIABLE, "")):
        _begin(os.environ[VARIABLE])
    if os.path.isdir(os.environ.get(ON_GPU, "")):
        import cuda_tma_on_gpu

        cuda_tma_on_gpu.begin()
    _run_next()
