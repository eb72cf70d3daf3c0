"""The functions and values that several tests of hostile PTX share."""

from __future__ import annotations

from cuda_tma import simulate
from cuda_tma.simulate import Config

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def launched(text, threads=32):
    gpu = simulate.Device()
    return gpu.launch(Config(1, threads), gpu.load(HEAD + text, "f"))
