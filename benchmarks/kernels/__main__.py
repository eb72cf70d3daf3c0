"""``python -m benchmarks.kernels [--earlier FOLDER] EXAMPLE ...``: time the examples once, in this process, or beside
themselves at another commit (`earlier`); a figure a line, as JSON."""

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from . import example, measured
from .earlier import Pair

parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
parser.add_argument("--earlier", type=Path, metavar="FOLDER")
parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
given = parser.parse_args()
load = example if given.earlier is None else partial(Pair, folder=given.earlier)
for name in given.examples:
    for figure in measured(name, load):
        print(json.dumps(asdict(figure)), flush=True)
