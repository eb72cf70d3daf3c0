"""The server of the driver library: it passes the requests of the library to the session of this process.

``libcuda/`` contains the library, in C, which stores handles and memory. For modules, launches and tensor maps it calls
a function that :func:`attach` registers. The command puts the library in front of a GPU's own by ``LD_LIBRARY_PATH``.
"""

from .library import attach
from .machine_code import keep

__all__ = ["attach", "keep"]
