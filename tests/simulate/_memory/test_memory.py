"""Tests of the places of accesses in the memory of a launch, at the ends of each state space."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate._memory.global_memory import GlobalMemory
from cuda_tma.simulate._memory.memory import Memory, Piece
from cuda_tma.simulate._warps.faults import Fault
from cuda_tma.simulate._warps.geometry import Geometry
from cuda_tma.simulate._warps.spaces import RANK_SHIFT, SHARED_START, WINDOW_BYTES, WINDOWS

BYTES, PITCH, LOCAL = 256, 2048, 1024
OTHER = 1 << RANK_SHIFT  # The shared memory of CTA 1 of the cluster begins here.
SHARED, OF_LOCAL = WINDOWS["shared"], WINDOWS["local"]


def made(cluster=(2, 1, 1)):
    """Return the memory of four CTAs of 32 threads, an array that kernels may write, and one that they may not."""
    all_global = GlobalMemory()
    geometry = Geometry((4, 1, 1), (32, 1, 1), cluster, 4, BYTES)
    written, read = np.zeros(64, np.uint8), np.zeros(32, np.uint8)
    memory = Memory(all_global, geometry, BYTES)
    return memory, all_global.allocate(written, "a"), all_global.allocate(read, "b", writeable=False)


def places(memory, space, lanes, addresses, size_bytes=4, writes=False):
    """Return the space, the lanes' indices and the positions of each piece, or the kind and text of the fault."""
    try:
        pieces = memory.pieces(space, np.array(lanes), np.array(addresses, np.int64), size_bytes, writes)
    except Fault as fault:
        return fault.kind, str(fault.message), np.asarray(fault.lanes).tolist()
    return [(each.space, None if each.chosen is None else each.chosen.tolist(), each.positions.tolist())
            for each in pieces]  # fmt: skip


END = SHARED_START + BYTES
IN_SHARED = [
    ("shared", [0], [SHARED_START], [SHARED_START]),
    ("shared", [0], [END - 4], [END - 4]),
    ("shared", [0, 40], [END - 4, OTHER + SHARED_START], [END - 4, PITCH + SHARED_START]),
    ("shared", [64, 96], [SHARED_START, OTHER + END - 4], [2 * PITCH + SHARED_START, 3 * PITCH + END - 4]),
    ("shared::cluster", [0], [OTHER + SHARED_START], [PITCH + SHARED_START]),
    ("shared::cluster", [40, 64], [SHARED_START, OTHER + END - 4], [SHARED_START, 3 * PITCH + END - 4]),
    ("", [0, 40], [SHARED + SHARED_START, SHARED + SHARED_START], [SHARED_START, SHARED_START]),
]  # fmt: skip


@pytest.mark.parametrize(("space", "lanes", "addresses", "positions"), IN_SHARED)
def test_positions_in_shared_memory(space, lanes, addresses, positions):
    assert places(made()[0], space, lanes, addresses) == [("shared", None, positions)]


@pytest.mark.parametrize(
    ("space", "lanes", "addresses", "kind", "message", "faulty"),
    [
        ("shared", [0], [SHARED_START - 4], "out-of-bounds", "4 bytes at byte -4 of shared memory, of which", [0]),
        ("shared", [0, 1], [END - 4, END], "out-of-bounds", "4 bytes at byte 256 of shared memory", [1]),
        ("shared", [3], [END - 2], "misaligned", f"4 bytes at 0x{END - 2:x}, which is not a multiple", [3]),
        ("shared", [0, 1], [SHARED_START, SHARED_START + 1], "misaligned", "of 4 bytes at 0x401", [1]),
        ("shared", [40], [SHARED_START], "cluster", "lies in CTA 0 of the cluster, and an instruction of", [40]),
        ("shared", [0, 1], [SHARED_START, OTHER + SHARED_START], "cluster", "here CTA 0 (PTX ISA", [1]),
        ("shared::cluster", [0], [2 * OTHER + SHARED_START], "cluster", "names CTA 2 of the cluster, which has 2", [0]),
        ("shared::cluster", [0], [-4], "cluster", "names CTA -1 of the cluster", [0]),
        ("local", [1, 2], [0, -4], "out-of-bounds", "at an address below the thread's stack", [1, 2]),
        ("local", [1, 2], [0, 1 << 18], "out-of-bounds", "an access to byte 262144 of local memory, of which", [2]),
    ],
)  # fmt: skip
def test_a_place_outside_of_a_space(space, lanes, addresses, kind, message, faulty):
    found = places(made()[0], space, lanes, addresses)
    assert (found[0], found[2]) == (kind, faulty) and message in found[1]


def test_shared_memory_without_a_cluster():
    memory = made((1, 1, 1))[0]
    assert places(memory, "shared", [0, 40], [SHARED_START, END - 4]) == [
        ("shared", None, [SHARED_START, PITCH + END - 4])
    ]
    for address in (SHARED_START - 4, END):
        assert places(memory, "shared", [0, 40], [SHARED_START, address])[2] == [40]
    assert places(memory, "shared", [0, 40], [SHARED_START, OTHER + SHARED_START])[0] == "cluster"


def test_local_memory_grows_when_a_thread_uses_it():
    memory = made()[0]
    assert places(memory, "local", [2, 3], [0, LOCAL - 4]) == [("local", None, [2 * LOCAL, 4 * LOCAL - 4])]
    assert memory.local_pitch == LOCAL
    memory.fill_local(np.array([2]), np.array([0, 5]), 7)
    assert places(memory, "local", [2, 3], [0, LOCAL]) == [("local", None, [4 * LOCAL, 7 * LOCAL])]
    assert memory.local_pitch == 2 * LOCAL
    (piece,) = memory.pieces("local", np.array([2]), np.array([0]), 4)
    assert piece.buffer.bytes[piece.positions[0] :][:6].tolist() == [7, 0, 0, 0, 0, 7]
    memory.fill_local(np.array([0]), np.array([2 * LOCAL]), 1)
    assert memory.local_pitch == 4 * LOCAL
    (piece,) = memory.pieces("local", np.array([2]), np.array([4]), 4)
    assert piece.buffer.bytes[piece.positions[0] :][:2].tolist() == [0, 7]


def test_generic_addresses_are_in_several_spaces():
    memory, array, _ = made()
    assert places(memory, "", [0, 1, 2, 3], [SHARED + SHARED_START, array.start + 8, OF_LOCAL + 4, array.start]) == [
        ("shared", [0], [SHARED_START]),
        ("local", [2], [2 * LOCAL + 4]),
        ("global", [1, 3], [8, 0]),
    ]
    assert places(memory, "", [1, 2], [OF_LOCAL, OF_LOCAL + 8]) == [("local", None, [LOCAL, 2 * LOCAL + 8])]
    for address in (SHARED - 4, SHARED + WINDOW_BYTES, OF_LOCAL - 4, OF_LOCAL + WINDOW_BYTES):
        assert "where no array lies; pass a pointer to an array" in places(memory, "", [1, 2], [address, address])[1]


def test_global_memory_of_several_arrays():
    memory, a, b = made()
    assert places(memory, "global", [0], [a.start + 60]) == [("global", None, [60])]
    assert places(memory, "global", [0, 1], [a.start, a.start + 60]) == [("global", None, [0, 60])]
    assert places(memory, "global", [0, 1, 2], [b.start + 28, a.start + 4, b.start]) == [
        ("global", [0, 2], [28, 0]),
        ("global", [1], [4]),
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_faults_in_global_memory(count):
    memory, a, b = made()
    lanes, name = [*range(count)], f"a at 0x{a.start:x}"
    kind, message, faulty = places(memory, "global", lanes, [a.start + 64] * count)
    assert (kind, faulty) == ("out-of-bounds", [0]) and f"4 bytes beyond the end of {name}" in message
    read_only = f"a write to 0x{b.start + 4:x} in b, which is read-only"
    assert places(memory, "global", lanes, [b.start + 4] * count, writes=True)[1] == read_only
    assert places(memory, "global", lanes, [b.start + 4] * count)[0][0] == "global"
    assert "no array lies" in places(memory, "global", lanes, [a.start - 4] * count)[1]
    far = b.stop + (1 << 30)
    assert f"{(1 << 30) + 4} bytes beyond the end of b" in places(memory, "global", lanes, [far] * count)[1]
    assert "no array lies" in places(memory, "global", lanes, [far + 4] * count)[1]
    memory.all_global.remove(a, "lay, which is freed")
    assert "a read of 4 bytes at" in places(memory, "global", lanes, [a.start] * count)[1]
    assert places(memory, "global", lanes, [a.start] * count)[1].endswith("where a lay, which is freed")


def test_ranges_of_global_memory():
    memory, a, b = made()
    assert memory.global_bytes(a.start + 32, 32, writes=True) == (a, 32)
    assert memory.global_bytes(b.start, 32) == (b, 0)
    for start, size, writes in ((a.start + 33, 32, False), (a.start - 1, 1, False), (b.start, 1, True)):
        with pytest.raises(Fault):
            memory.global_bytes(start, size, writes)


def test_operands_of_barriers_are_in_shared_memory():
    memory = made()[0]
    assert memory.in_shared("shared", slice(0, 1), np.array([END - 8]), 8).tolist() == [END - 8]
    assert memory.in_shared("", slice(64, 65), np.array([SHARED + SHARED_START]), 8).tolist() == [
        2 * PITCH + SHARED_START
    ]
    assert memory.shared_position("shared::cluster", 96, SHARED_START + 8, 8) == 2 * PITCH + SHARED_START + 8
    for space, address, kind in (
        ("shared", SHARED_START + 4, "misaligned"),
        ("shared", END, "out-of-bounds"),
        ("", SHARED - 8, "fault"),
        ("", SHARED + WINDOW_BYTES, "fault"),
        ("", 64, "fault"),
    ):
        with pytest.raises(Fault) as fault:
            memory.in_shared(space, slice(0, 1), np.array([address]), 8)
        assert fault.value.kind == kind


def test_the_memory_of_new_ctas_is_cleared():
    memory, a, _ = made()
    memory.shared.bytes[:] = 1
    memory.clear_shared(range(1, 3))
    assert [int(memory.shared.bytes[at * PITCH :][:PITCH].sum()) for at in range(4)] == [PITCH, 0, 0, PITCH]
    assert [len(each) for each in memory.writeable()] == [4 * PITCH, 4 * 32 * LOCAL, 64]
    assert a.bytes is [*memory.writeable()][2]


def test_the_values_of_a_piece():
    values = np.array([5, 6, 7])
    some, whole = Piece(np.array([0, 2]), None, None, ""), Piece(None, None, None, "")
    assert some.of(values).tolist() == [5, 7] and whole.of(values) is values and some.of(np.int64(3)) == 3
