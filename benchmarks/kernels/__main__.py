"""``python -m benchmarks.kernels [--earlier FOLDER | --watched | --after] EXAMPLE ...``: time the examples once, in
this process, or beside themselves at another commit (`earlier`) or without a watchdog (`watched`), or what is launched
after them (`after`); a figure a line, as JSON."""

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from . import measured
from .after import Neighbours
from .earlier import Pair
from .watched import Watched

parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
way = parser.add_mutually_exclusive_group()
way.add_argument("--earlier", dest="load", type=lambda folder: partial(Pair, folder=Path(folder)), metavar="FOLDER")
way.add_argument("--watched", dest="load", action="store_const", const=Watched)
way.add_argument("--after", dest="load", action="store_const", const=Neighbours)
parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
given = parser.parse_args()
for name in given.examples:
    for figure in measured(name, given.load):
        print(json.dumps(asdict(figure)), flush=True)
