"""Tests that divide the places in a chain of inlined calls into the user's source and library code."""

from __future__ import annotations

import pytest

from cuda_tma.simulate._places import is_library, statements
from cuda_tma.simulate._ptx import Place

LIBRARIES = [
    "/usr/local/cuda/include/cuda_fp16.hpp",
    "/usr/local/cuda-13.0/include/cccl/cuda/__barrier/barrier_block_scope.h",
    "/usr/local/cuda-12.9/targets/x86_64-linux/include/cuda/barrier",
    "/opt/nvidia/include/cccl/cub/warp/warp_scan.cuh",
    "/venv/lib/python3.12/site-packages/triton/language/core.py",
]
OWN = ["/home/ada/cuda/kernel.cu", "/home/ada/include/cuda/tile.h", "cuda/include.cu", "/src/cuda-samples/common/a.h"]


@pytest.mark.parametrize("file", LIBRARIES)
def test_headers_of_the_toolkit_and_packages_are_libraries(file):
    assert is_library(file)


@pytest.mark.parametrize("file", OWN)
def test_files_of_a_user_are_no_libraries(file):
    assert not is_library(file)


def test_the_statement_of_the_user_comes_before_those_of_the_toolkit():
    inner, own = Place(LIBRARIES[1], 382, 5), Place("kernel.cu", 10, 5)
    assert statements([inner, own]) == ([own], [inner])
    assert statements([inner]) == ([inner], [])
