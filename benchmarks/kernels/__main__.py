"""``python -m benchmarks.kernels EXAMPLE ...``: time the examples once, in this process; a figure a line, as JSON."""

import json
import sys
from dataclasses import asdict

from . import measured

for name in sys.argv[1:]:
    for figure in measured(name):
        print(json.dumps(asdict(figure)), flush=True)
