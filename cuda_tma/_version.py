"""The version of the package.

The package defines its version only in this module, and pyproject.toml reads it.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
