"""The version of the package, said here and nowhere else: pyproject.toml reads this line."""

__all__ = ["__version__"]

__version__ = "0.1.0"
