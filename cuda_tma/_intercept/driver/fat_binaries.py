"""The fat binaries that nvcc embeds in programs.

The module reads the entries, and selects the PTX that fits a device best.

NVIDIA does not document the layout of a fat binary. The fields below were observed with nvcc 13.0 and each
``--compress-mode``: a header of 16 bytes, and then the entries, each of which has its own header. A program may pass
arbitrary bytes. The reader therefore checks every offset, and decompresses only texts that the device can run.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from ..._budget import KERNEL_BYTES
from .compression import lz4_block, zstd_frame

__all__ = ["ELF", "Entry", "entries_of", "is_fat_binary", "ptx_for"]

_MAGIC = 0xBA55ED50
# The header contains a magic number, a version, the size of the header, and the size of all entries.
_HEADER = struct.Struct("<IHHQ")
# The header of an entry begins with the kind, the version, the size of the header, the size of the payload, the
# compressed size, and 4 unknown bytes. The next fields of an entry's header are the minor and the major version, the
# architecture, and the offset and the length of a name. The last fields of an entry's header are the flags, 8 unknown
# bytes, and the decompressed size.
_ENTRY = struct.Struct("<HHIQI4xHHIIIQ8xQ")
_PTX, ELF = 1, 2
# The flag 0x2000 marks a payload that LZ4 has compressed, and the flag 0x8000 marks a payload that zstd has compressed.
_LZ4, _ZSTD = 0x2000, 0x8000
_MOST_ENTRIES = 4096
_TARGET = re.compile(rb"^[ \t]*\.target[ \t]+sm_(\d{2,3})([af]?)\b", re.MULTILINE)


class Entry(NamedTuple):
    """An entry of a fat binary.

    Attributes
    ----------
    kind : int
        The number 1 for PTX, or 2 for machine code.
    architecture : int
        The number of the architecture, such as 90.
    flags : int
    payload : bytes
        The bytes in the binary, which may be compressed.
    size : int
        The size of the decompressed text or code, in bytes.
    """

    kind: int
    architecture: int
    flags: int
    payload: bytes
    size: int

    def data(self) -> bytes:
        """Return the decompressed text or code of the entry.

        Raises
        ------
        ValueError
            If the entry is damaged or too large.
        """
        if self.size > KERNEL_BYTES:
            raise ValueError(
                f"an entry for sm_{self.architecture} has {self.size} bytes, more than the limit of {KERNEL_BYTES}"
            )
        if self.flags & _ZSTD:
            return zstd_frame(self.payload, self.size)
        return lz4_block(self.payload, self.size) if self.flags & _LZ4 else self.payload

    def described(self) -> str:
        """Return a description of the entry's content for messages."""
        kinds = {_PTX: "PTX", ELF: "machine code"}
        return f"{kinds.get(self.kind, f'an entry of kind {self.kind}')} for sm_{self.architecture}"


def is_fat_binary(image: bytes) -> bool:
    """Return whether a module begins with the header of a fat binary."""
    return image[:4] == struct.pack("<I", _MAGIC)


def entries_of(image: bytes) -> list[Entry]:
    """Return the entries of a fat binary in the order of the binary.

    Raises
    ------
    ValueError
        If a header contains an offset outside the binary.
    """
    if len(image) < _HEADER.size:
        raise ValueError(f"a fat binary has {len(image)} bytes, fewer than its header")
    _, _, at, size = _HEADER.unpack_from(image)
    stop = at + size
    if at < _HEADER.size or stop > len(image):
        raise ValueError(f"a fat binary has {len(image)} bytes, but its header states {stop}")
    entries: list[Entry] = []
    while at < stop:
        if len(entries) == _MOST_ENTRIES:
            raise ValueError(f"a fat binary has more than {_MOST_ENTRIES} entries")
        entry, at = _entry(image, at, stop)
        entries.append(entry)
    return entries


def _entry(image: bytes, at: int, stop: int) -> tuple[Entry, int]:
    """Return the entry at a position, and the position after it."""
    if stop - at < _ENTRY.size:
        raise ValueError(f"a fat binary is truncated within the header of the entry at byte {at}")
    kind, _, header, size, compressed, _, _, architecture, _, _, flags, plain = _ENTRY.unpack_from(image, at)
    first = at + header
    if header < _ENTRY.size or first + size > stop:
        raise ValueError(
            f"the entry at byte {at} of a fat binary ends at byte {first + size}, after the end of the fat binary at "
            f"byte {stop}"
        )
    is_compressed = bool(flags & (_LZ4 | _ZSTD))
    if is_compressed and compressed > size:
        raise ValueError(
            f"the entry at byte {at} of a fat binary states {compressed} compressed bytes, but has only {size} bytes"
        )
    payload = image[first : first + (compressed if is_compressed else size)]
    return Entry(kind, architecture, flags, payload, plain if is_compressed else size), first + size


def ptx_for(image: bytes, compute_capability: tuple[int, int]) -> str | None:
    """Return the PTX that the driver would compile for a device: the text with the highest architecture that the device
    supports.

    If two texts have the same architecture, the text with architecture-specific features (``sm_90a``) takes precedence.
    The result is None if no text fits the device.

    Raises
    ------
    ValueError
        If the binary is damaged, or if each entry that fits the device is damaged.
    """
    number = 10 * compute_capability[0] + compute_capability[1]
    found: list[tuple[int, bool, bytes]] = []
    broken: ValueError | None = None
    for entry in entries_of(image):
        if entry.kind != _PTX or entry.architecture > number or (found and entry.architecture < found[0][0]):
            continue
        try:
            text = entry.data().strip(b"\0\n")
        except ValueError as error:
            broken = error
            continue
        suffix = _suffix(text)
        if _runs(entry.architecture, suffix, number):
            found = [
                *(each for each in found if each[0] == entry.architecture),
                (entry.architecture, bool(suffix), text),
            ]
    if not found and broken is not None:
        raise broken
    return max(found, key=lambda each: each[:2])[2].decode("utf-8", "replace") if found else None


def _suffix(text: bytes) -> bytes:
    match = _TARGET.search(text[:4096])
    return match[2] if match else b""


def _runs(architecture: int, suffix: bytes, number: int) -> bool:
    """Return whether PTX for an architecture runs on a device (PTX ISA 9.0, ".target", the suffixes a and f)."""
    if suffix == b"a":
        return architecture == number
    if suffix == b"f":
        return architecture // 10 == number // 10 and architecture <= number
    return architecture <= number
