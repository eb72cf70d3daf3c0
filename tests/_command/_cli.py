"""The functions and values that several test modules of the command line share."""

from __future__ import annotations

from cuda_tma._command import cli
from cuda_tma.codec import encode
from tests.support.descriptors import LEGAL

LEGAL_SHAPE = ["--shape", "40x48x64", "--dtype", "float32", "--box", "2x16x32", "--swizzle", "128B"]
LEGAL_SHAPE += ["--address", "4096"]
WRONG_SHAPE = ["--shape", "128x1733", "--dtype", "float32", "--box", "32x32", "--swizzle", "128B"]
HEX = encode(LEGAL).hex()


def run(capsys, *arguments):
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


FACTS = {
    "versions": {"cuda-tma": "9.9", "rich": None},
    "include_path": "/inc",
    "driver": {"cuda_version": "13.0", "functions": {"allocation class": False}},
    "devices": [
        {"name": "H200", "compute_capability": (9, 0), "has_tma": True},
        {"name": "A100", "compute_capability": (8, 0), "has_tma": False},
    ],
}
