"""The version of the package, defined only here: pyproject.toml reads this line."""

__all__ = ["__version__"]

__version__ = "0.1.0"
