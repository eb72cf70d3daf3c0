"""The command ``cuda-tma``, as ``python -m cuda_tma``."""

import sys

from ._command.cli import main

if __name__ == "__main__":
    sys.exit(main())
