"""The command ``python -m benchmarks.kernels [--against VARIANT] EXAMPLE ...``.

The command times the examples once, in this process, against their rivals or a variant of themselves (`against`), and
prints one figure in each line, as JSON.
"""

import argparse
import json
from dataclasses import asdict
from functools import partial

from . import measured
from .against import pair_of

parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
parser.add_argument("--against", metavar="VARIANT")
parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
given = parser.parse_args()
load = partial(pair_of, given.against) if given.against else None
for name in given.examples:
    for figure in measured(name, load):
        print(json.dumps(asdict(figure)), flush=True)
