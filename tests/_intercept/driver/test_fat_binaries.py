"""Tests of the reader of nvcc's fat binaries, which selects the entry for a device, and refuses damaged bytes at any
place."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from cuda_tma._intercept.driver.fat_binaries import entries_of, ptx_for
from cuda_tma._intercept.driver.images import NoPTX, ptx_of

DATA = Path(__file__).parents[2] / "data" / "fat_binaries"
MODES = ("none", "speed", "size")


def fat_binary(mode: str) -> bytes:
    return (DATA / f"add_one_{mode}.fatbin").read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_the_entries_are_those_of_the_options_of_nvcc(mode):
    found = [each.described() for each in entries_of(fat_binary(mode))]
    assert found == ["machine code for sm_80", "PTX for sm_80", "PTX for sm_90", "PTX for sm_90", "PTX for sm_100"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("compute_capability", "target"),
    [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90a"), ((10, 0), "sm_100"), ((12, 0), "sm_100")],
)
def test_a_device_takes_the_best_text_that_it_can_run(mode, compute_capability, target):
    """Only a device of compute capability 9.0 runs the text for sm_90a."""
    text = ptx_for(fat_binary(mode), compute_capability)
    assert text is not None and f".target {target}\n" in text
    assert text.startswith(".version 9.0\n") and text.endswith("}") and ".visible .entry add_one(" in text


def test_no_text_fits_an_older_device():
    assert ptx_for(fat_binary("none"), (7, 5)) is None
    with pytest.raises(NoPTX, match=r"PTX for sm_80.* no PTX for compute capability 7\.5.*code=compute_75a"):
        ptx_of(fat_binary("none"), (7, 5))


def test_a_program_with_only_machine_code_is_refused_with_the_option():
    with pytest.raises(NoPTX, match=r"contains machine code for sm_90, but no PTX .* Remedy: compile with -gencode"):
        ptx_of((DATA / "machine_code.fatbin").read_bytes(), (9, 0))


def test_compressed_texts_are_equal():
    assert len({ptx_for(fat_binary(mode), (9, 0)) for mode in MODES}) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_binary_that_ends_anywhere_is_refused(mode):
    whole = fat_binary(mode)
    for size in range(0, len(whole), 7):
        with pytest.raises(ValueError):
            ptx_for(whole[:size], (9, 0))


@pytest.mark.parametrize("mode", MODES)
def test_damaged_binaries_end_in_a_text_or_a_value_error(mode):
    whole = fat_binary(mode)
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 8))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            text = ptx_of(bytes(damaged), (9, 0))
        except ValueError:
            continue
        assert isinstance(text, str)


def test_an_entry_of_no_bytes_does_not_repeat_for_ever():
    entry = struct.pack("<HHIQI4xHHIIIQ8xQ", 1, 0x101, 64, 0, 0, 0, 9, 80, 0, 0, 0x11, 0)
    image = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64 * 5000) + entry * 5000
    with pytest.raises(ValueError, match="more than 4096 entries"):
        entries_of(image)


def test_an_entry_that_declares_gigabytes_is_not_decompressed():
    payload = b"\x00" * 16
    entry = struct.pack("<HHIQI4xHHIIIQ8xQ", 1, 0x101, 64, 16, 16, 0, 9, 90, 0, 0, 0x2011, 1 << 40)
    image = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 80) + entry + payload
    with pytest.raises(ValueError, match="more than the limit of 33554432"):
        ptx_for(image, (9, 0))
