"""The version of the package, as its metadata has it: pyproject.toml says it, and nobody else."""

from importlib import metadata

__all__ = ["__version__"]

try:
    __version__: str = metadata.version("cuda-tma")
except metadata.PackageNotFoundError:  # run from its sources, built in place and not installed
    __version__ = "0+uninstalled"
