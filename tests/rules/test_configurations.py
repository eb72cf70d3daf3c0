"""Tests of the rules for a launch's configuration at their limits, in general and for a kernel with directives."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cuda_tma.rules import _configurations as rules
from cuda_tma.rules._configurations import NO_DIRECTIVES, Directives, directives_in, directives_of

ONE = (1, 1, 1)
MOST_X = (1 << 31) - 1


def test_the_directives_of_a_kernel():
    assert directives_of({}) == NO_DIRECTIVES == Directives(None, None, 1024, 16, False, False)
    assert directives_of({"maxntid": ["64", "2"], "maxclusterrank": ["8"]}) == Directives(None, None, 128, 8)
    assert directives_of({"reqntid": [32], "reqnctapercluster": [2, 1, 3]}) == Directives((32, 1, 1), (2, 1, 3))
    assert directives_of({"explicitcluster": []}) == Directives(is_cluster_explicit=True)
    assert directives_of({"blocksareclusters": []}) == Directives(counts_clusters=True)


def test_the_directives_in_ptx():
    ptx = """.visible .entry k2(.param .u64 a) .maxntid 32 { ret; }
    .visible .entry k(.param .u64 a,
    .param .u64 b) .reqntid 64, 2
    .explicitcluster .maxclusterrank 4 { .pragma ".maxntid 7"; }"""
    assert directives_in(ptx, "k2") == Directives(most_threads=32)
    assert directives_in(ptx, "k") == Directives((64, 2, 1), None, 1024, 4, True)
    assert directives_in(ptx, "other") == NO_DIRECTIVES


def test_the_fields_of_a_mapping():
    assert rules.fields_of({"grid": 3, "block": [32, 2]}) == {"grid": (3, 1, 1), "block": (32, 2, 1), "shmem_size": 0}
    given = {"grid": (1, 2, 3), "block": 1, "cluster": None, "shmem_size": None, "is_cooperative": 1,
             "programmatic_stream_serialization": np.bool_(False)}  # fmt: skip
    assert rules.fields_of(given) == {"grid": (1, 2, 3), "block": ONE, "cluster": None, "shmem_size": 0,
                                      "is_cooperative": True, "programmatic_stream_serialization": False}  # fmt: skip
    assert rules.fields_of({"grid": 1, "block": 1, "cluster": 2})["cluster"] == (2, 1, 1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"grid": ...}, TypeError, "the configuration has no grid; pass both a grid and a block"),
        ({"block": ...}, TypeError, "the configuration has no block; pass both a grid and a block"),
        ({"stream": 1}, TypeError, "the configuration has no field 'stream'; its fields are grid, block, cluster"),
        ({"grid": 0}, ValueError, "grid=0; pass one to three integers, each at least 1, x first"),
        ({"grid": ()}, ValueError, "grid=(); pass one to three integers"),
        ({"block": (1, 1, 1, 1)}, ValueError, "block=(1, 1, 1, 1); pass one to three integers"),
        ({"block": (1, -1)}, ValueError, "block=(1, -1); pass one to three integers"),
        ({"cluster": 1.5}, ValueError, "cluster=1.5; pass one to three integers"),
        ({"cluster": "2"}, ValueError, "cluster='2'; pass one to three integers"),
        ({"shmem_size": -1}, ValueError, "shmem_size=-1; pass bytes of dynamic shared memory, 0 or more"),
        ({"shmem_size": 1 << 31}, ValueError, "shmem_size=2147483648; pass bytes"),
        ({"shmem_size": 1.5}, TypeError, "shmem_size is 1.5; pass an integer: bytes of dynamic shared memory"),
        ({"is_cooperative": 2}, TypeError, "is_cooperative is 2; pass True or False"),
        ({"is_cooperative": "yes"}, TypeError, "is_cooperative is 'yes'; pass True or False"),
        ({"programmatic_stream_serialization": None}, TypeError, "programmatic_stream_serialization is None"),
    ],
)
def test_a_field_that_no_launch_can_use(changes, error, message):
    given = {name: value for name, value in ({"grid": 1, "block": 1} | changes).items() if value is not ...}
    with pytest.raises(error, match=re.escape(message)):
        rules.fields_of(given)


def test_the_largest_fields():
    assert rules.shared_bytes(0) == 0 and rules.shared_bytes(np.int64(MOST_X)) == MOST_X
    assert rules.three_extents("grid", (1, MOST_X, 2)) == (1, MOST_X, 2)
    for given in ((1, 1), (1, 1, 1, 1), (0, 1, 1), (1, 1, MOST_X + 1), (1, 1, 1.5), 3, ()):
        with pytest.raises(ValueError, match=f"the configuration's grid is .*; pass three integers from 1 to {MOST_X}"):
            rules.three_extents("grid", given)


def test_an_object_that_is_no_configuration():
    assert str(rules.no_configuration(5)).startswith("config is a int; launch takes a cuda.core.LaunchConfig")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((ONE, (1024, 1, 1), None), ""),
        ((ONE, (513, 2, 1), None), "block=(513, 2, 1) has 1026 threads; pass a block of at most 1024 threads"),
        ((ONE, (1, 1024, 1), None), ""),
        ((ONE, (1, 1, 64), None), ""),
        ((ONE, (1, 1, 65), None), "block=(1, 1, 65) is too large; pass at most (1024, 1024, 64)"),
        (((MOST_X, 65535, 65535), ONE, None), ""),
        (((MOST_X + 1, 1, 1), ONE, None), "grid=(2147483648, 1, 1) is too large; pass at most (2147483647, 65535"),
        (((1, 65536, 1), ONE, None), "grid=(1, 65536, 1) is too large"),
        (((1, 1, 65536), ONE, None), "grid=(1, 1, 65536) is too large"),
        ((ONE, ONE, (4, 4, 1)), ""),
        ((ONE, ONE, (17, 1, 1)), "cluster=(17, 1, 1) has 17 CTAs; pass a cluster of at most 16 CTAs"),
    ],
)
def test_extents_that_every_gpu_refuses(given, message):
    if not message:
        rules.check_extents(*given)
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        rules.check_extents(*given)


FIXED = Directives((64, 1, 1), (2, 1, 1))
EXPLICIT, COUNTS = Directives(is_cluster_explicit=True), Directives(None, (2, 1, 1), counts_clusters=True)
SMALL = Directives(most_threads=64, most_ctas_of_cluster=4)
SHAPES = [
    (NO_DIRECTIVES, (3, 4, 5), ONE, None, ((3, 4, 5), ONE)),
    (NO_DIRECTIVES, (3, 4, 5), ONE, (2, 1, 3), ((6, 4, 15), (2, 1, 3))),
    (NO_DIRECTIVES, (1, 65535, 1), ONE, (2, 1, 1), ((2, 65535, 1), (2, 1, 1))),
    (NO_DIRECTIVES, (1, 65535, 1), ONE, (1, 2, 1), "grid times cluster=(1, 131070, 1) is too large"),
    (FIXED, (4, 1, 1), (64, 1, 1), None, ((4, 1, 1), (2, 1, 1))),
    (FIXED, (4, 1, 1), (64, 1, 1), (2, 1, 1), ((8, 1, 1), (2, 1, 1))),
    (FIXED, (3, 1, 1), (64, 1, 1), None, "grid=(3, 1, 1) is not a multiple of (2, 1, 1), the cluster for"),
    (FIXED, (4, 1, 1), (32, 1, 1), None, "block=(32, 1, 1) was passed, but kernel k was compiled only for blocks of"),
    (FIXED, (4, 1, 1), (64, 1, 1), (4, 1, 1), "was passed, but kernel k was compiled for clusters of (2, 1, 1)"),
    (EXPLICIT, ONE, ONE, None, "the configuration has no cluster, but kernel k was compiled for launches that specify"),
    (EXPLICIT, ONE, ONE, (2, 1, 1), ((2, 1, 1), (2, 1, 1))),
    (Directives(None, (2, 1, 1), is_cluster_explicit=True), (2, 1, 1), ONE, None, ((2, 1, 1), (2, 1, 1))),
    (COUNTS, (3, 1, 1), ONE, None, ((6, 1, 1), (2, 1, 1))),
    (COUNTS, (3, 1, 1), ONE, (2, 1, 1), "but the grid of kernel k already counts clusters of (2, 1, 1)"),
    (Directives(counts_clusters=True), (3, 1, 1), ONE, ONE, ((3, 1, 1), ONE)),
    (SMALL, ONE, (32, 2, 1), None, (ONE, ONE)),
    (SMALL, ONE, (65, 1, 1), None, "block=(65, 1, 1) has 65 threads, but kernel k was compiled for at most 64"),
    (SMALL, ONE, ONE, (2, 2, 1), ((2, 2, 1), (2, 2, 1))),
    (SMALL, ONE, ONE, (5, 1, 1), "cluster=(5, 1, 1) has 5 CTAs, but kernel k was compiled for at most 4"),
]


@pytest.mark.parametrize(("directives", "grid", "block", "cluster", "expected"), SHAPES)
def test_the_grid_and_the_cluster_of_a_launch(directives, grid, block, cluster, expected):
    if isinstance(expected, tuple):
        assert rules.shape("k", directives, grid, block, cluster) == expected
        return
    with pytest.raises(ValueError, match=re.escape(expected)):
        rules.shape("k", directives, grid, block, cluster)
