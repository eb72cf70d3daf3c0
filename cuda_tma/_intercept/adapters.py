"""The table of adapters, in which the name of an imported module selects the adapter to load."""

from __future__ import annotations

from collections.abc import Callable

from .session import Session, current

__all__ = ["loaded"]


def _torch(session: Session) -> None:
    from .torch import install

    install(session)


def _torch_extensions(session: Session) -> None:
    from .patches import Patches
    from .torch.refused import refuse_extensions

    refuse_extensions(Patches())


def _triton(session: Session) -> None:
    from .triton import install

    install(session)


def _tilelang(session: Session) -> None:
    from .tilelang import install

    install(session)


def _numba(session: Session) -> None:
    from .numba import install

    install()


def _cupy(session: Session) -> None:
    from .cupy import install

    install(_CUPY)


def _cupy_sorts(session: Session) -> None:
    from .cupy import refuse_sorts

    refuse_sorts(_THRUST)


def _cute_environment(session: Session) -> None:
    from .cute import set_environment

    set_environment()


def _cute(session: Session) -> None:
    from .cute import install

    install()


def _ours(session: Session) -> None:
    from .ours import install

    install(session)


_CUPY, _THRUST = "cupy_backends.cuda.api.runtime", "cupy.cuda.thrust"

# Each key is the name of a module, and an import of this module calls the function, which imports the adapter.
_ADAPTERS: dict[str, Callable[[Session], None]] = {
    "torch": _torch,
    "torch.utils.cpp_extension": _torch_extensions,
    "triton": _triton,
    "tilelang": _tilelang,
    "numba.cuda.dispatcher": _numba,
    _CUPY: _cupy,
    _THRUST: _cupy_sorts,
    "cutlass._mlir._mlir_libs": _cute_environment,
    "cutlass.cute.runtime": _cute,
    "cuda_tma": _ours,
}


def loaded(name: str) -> None:
    """Install the adapter of a module that was just imported."""
    session = current()
    if session is not None and name in _ADAPTERS:
        _ADAPTERS[name](session)
