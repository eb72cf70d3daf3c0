"""``python -m benchmarks.kernels [--earlier FOLDER | --watched] EXAMPLE ...``: time the examples once, in this process,
or beside themselves at another commit (`earlier`) or without a watchdog (`watched`); a figure a line, as JSON."""

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from . import example, measured
from .earlier import Pair
from .watched import Watched

parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
parser.add_argument("--earlier", type=Path, metavar="FOLDER")
parser.add_argument("--watched", action="store_true")
parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
given = parser.parse_args()
load = Watched if given.watched else example if given.earlier is None else partial(Pair, folder=given.earlier)
for name in given.examples:
    for figure in measured(name, load):
        print(json.dumps(asdict(figure)), flush=True)
