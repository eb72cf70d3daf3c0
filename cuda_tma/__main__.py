"""The entry point of ``python -m cuda_tma``, which runs the command ``cuda-tma``."""

import sys

from ._command.cli import main

if __name__ == "__main__":
    sys.exit(main())
