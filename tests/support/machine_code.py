"""The instructions of a cubin, for comparisons. Kernels that differ only in their source text have equal bytes."""

from __future__ import annotations

import struct


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """Return the instructions of each kernel in a cubin, by the kernel's name (source: ELF-64 object file format,
    section header table)."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_bytes, count, of_names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<I4xQQQQ", cubin, table + i * entry_bytes) for i in range(count)]
    names = sections[of_names][3]

    def name_of(offset: int) -> str:
        start = names + offset
        return cubin[start : cubin.index(b"\0", start)].decode()

    found = {name_of(name): cubin[start : start + size] for name, _, _, start, size in sections}
    return {name.removeprefix(".text."): code for name, code in found.items() if name.startswith(".text.")}
