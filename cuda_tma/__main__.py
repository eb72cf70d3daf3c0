"""``python -m cuda_tma`` is ``cuda-tma``."""

import sys

from ._command.cli import main

if __name__ == "__main__":
    sys.exit(main())
