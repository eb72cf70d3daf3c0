"""Tests of the decompression of LZ4 blocks and zstd frames. Known texts are decoded, and damaged data is refused."""

from __future__ import annotations

import pytest

from cuda_tma._intercept.driver import compression
from cuda_tma._intercept.driver.compression import lz4_block, zstd_frame

# The zstd frame has one uncompressed block.
HELLO = bytes.fromhex("28b52ffd2005290000") + b"hello"


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (b"\x50hello", b"hello"),
        (b"\x00", b""),
        # The LZ4 match reads bytes that the same match has written.
        (b"\x10a\x01\x00\x00", b"aaaaa"),
        (b"\x30abc\x03\x00\x20de", b"abcabcade"),
        (b"\xf0\x05" + b"x" * 20, b"x" * 20),
        (b"\x1fa\x01\x00\xff\x02\x10b", b"a" * (1 + 4 + 15 + 257) + b"b"),
    ],
)
def test_an_lz4_block_has_its_bytes(block, data):
    assert lz4_block(block, len(data)) == data


@pytest.mark.parametrize(
    "block",
    [b"", b"\x50hell", b"\x10a\x02\x00\x00", b"\x10a\x00\x00\x00", b"\x10a\x01", b"\xf0\xff\xff", b"\x50hello\x01\x00"],
)
def test_a_broken_lz4_block_is_refused(block):
    with pytest.raises(ValueError, match="LZ4 block"):
        lz4_block(block, 5)


def test_an_lz4_block_never_grows_beyond_its_size():
    with pytest.raises(ValueError, match="from outside the block"):
        lz4_block(b"\x1fa\x01\x00" + b"\xff" * 1000 + b"\x00", 100)


@pytest.mark.parametrize("find", ["_of_python", "_of_package", "_of_system"])
def test_a_zstd_frame_has_its_bytes(find):
    decode = getattr(compression, find)()
    if decode is None:
        pytest.skip("this machine does not have that decoder")
    assert decode(HELLO, 5) == b"hello"
    for broken, size in ((HELLO[:-1], 5), (HELLO, 4), (HELLO, 6), (b"", 5), (b"hello", 5)):
        with pytest.raises(ValueError, match="zstd frame"):
            decode(broken, size)


def test_without_a_decoder_the_error_has_the_option(monkeypatch):
    for find in ("_of_python", "_of_package", "_of_system"):
        monkeypatch.setattr(compression, find, lambda: None)
    with pytest.raises(ValueError, match="--compress-mode=speed"):
        zstd_frame(HELLO, 5)
