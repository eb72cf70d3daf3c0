"""The driver library of this process: its requests go to the session.

``libcuda/`` has the library in C. It keeps handles and memory, and asks a function that :func:`attach` registers for
modules, launches and tensor maps. The command puts the library in front of a GPU's own by ``LD_LIBRARY_PATH``.
"""

from .library import attach
from .machine_code import keep

__all__ = ["attach", "keep"]
